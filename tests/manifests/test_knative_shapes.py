"""What we hand to Knative has the fields that Knative knows."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from muster.data import EVENTING
from muster.kustomize import load
from muster.objects import yaml_files
from tests.manifests.knative_models import SPECS

OVERLAYS = sorted(path.name for path in (EVENTING / "overlays").iterdir() if path.is_dir())


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_field_is_one_of_knatives(overlay: str) -> None:
    """Of eventing and sources; a name misspelt would be dropped by the API server silently."""
    kinds = set()
    for manifest in load(EVENTING / "overlays" / overlay):
        if manifest["apiVersion"].partition("/")[0] in {"eventing.knative.dev", "sources.knative.dev"}:
            SPECS[manifest["apiVersion"], manifest["kind"]].model_validate(manifest["spec"])
            kinds.add(manifest["kind"])
    assert kinds == {kind for _, kind in SPECS} - {"EventPolicy"}


def test_every_field_of_the_event_policy_is_one_of_knatives() -> None:
    """It is in a component, because Knative refuses it by default."""
    policy = yaml_files.load((EVENTING / "components/event-policy/event-policy.yaml").read_text())
    SPECS[policy["apiVersion"], policy["kind"]].model_validate(policy["spec"])


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        pytest.param(
            "Trigger", "{broker: muster, filter: [], subscriber: {}}", id="filter where filters is meant"
        ),
        pytest.param("Broker", "{delivery: {retries: 5}}", id="retries where retry is meant"),
        pytest.param("ApiServerSource", "{mode: resource}", id="a mode in small letters"),
    ],
)
def test_a_misspelt_field_is_seen(kind: str, spec: str) -> None:
    """The models would be worth nothing if they took everything."""
    model = next(model for (_, named), model in SPECS.items() if named == kind)
    content: Any = yaml_files.load(spec)
    with pytest.raises(ValidationError):
        model.model_validate(content)
