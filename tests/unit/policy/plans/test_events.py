"""Events about the objects that Muster groups."""

from __future__ import annotations

import re

import pytest

from muster.objects.meta import ObjectRef
from muster.policy.groups.manifests import create_event
from tests.support.builders import NOW

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@pytest.mark.parametrize(
    "about",
    [
        pytest.param("torch", id="short"),
        pytest.param("t" * 253, id="as long as a name may be"),
        pytest.param(f"{'t' * 199}-distributed", id="cut behind a dash"),
        pytest.param(f"{'t' * 199}.distributed", id="cut behind a dot"),
    ],
)
def test_the_name_of_an_event_is_valid(about: str) -> None:
    """Whatever it is about: the API server would refuse it, and it would be lost."""
    ref = ObjectRef("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "", about, "uid")
    event = create_event(ref, component="c", warning=True, reason="R", message="m", now=NOW)
    assert len(event.target.name) <= 253
    assert SUBDOMAIN.fullmatch(event.target.name)
