"""Objects have the shape of v1beta1 whichever version the cluster serves, also when that changes."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.interface import Object
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef
from muster.objects.resources import POD_GROUPS, Resource
from muster.policy.model import Action, Verb
from tests.support.builders import a_pod_group, with_spec

NEW = frozenset({"v1beta1/workloads", "v1beta1/podgroups"})
OLD = frozenset({"v1alpha2/workloads", "v1alpha2/podgroups"})
OFF = frozenset({"v1/priorityclasses"})


class Serving:
    """A cluster that serves these versions, and remembers which it was asked for and what it was sent."""

    def __init__(self, serves: frozenset[str]) -> None:
        self.serves = serves
        self.asked: list[str] = []
        self.sent: list[Any] = []

    def served_versions(self, _group: str) -> frozenset[str]:
        """What is served."""
        self.asked.append("discovery")
        return self.serves

    def get(self, resource: Resource, _name: str, _namespace: str = "") -> Object | None:
        """What was sent last."""
        return self._answer(resource.version)

    def write(self, action: Action, _manager: str) -> Object:
        """What was sent."""
        self.sent.append(action.body)
        return self._answer(action.target.api_version.rpartition("/")[2])

    def _answer(self, version: str) -> Object:
        self.asked.append(version)
        if f"{version}/podgroups" not in self.serves:
            raise errors.ApiGone("404 page not found", status=404)
        return dict(self.sent[-1])


BODY = a_pod_group("llama", with_spec(disruptionMode={"single": {}}))
CREATE = Action(Verb.CREATE, ObjectRef(POD_GROUPS.api_version, POD_GROUPS.kind, "team-a", "llama"), BODY)


@pytest.mark.parametrize(
    ("before", "after", "version", "mode"),
    [(OLD, NEW, "v1beta1", {"single": {}}), (NEW, OLD, "v1alpha2", "Pod")],
)
def test_after_an_upgrade_the_new_version_is_used(
    before: frozenset[str], after: frozenset[str], version: str, mode: Any
) -> None:
    """It is noticed at the first 404, in the same call; before, discovery is asked once."""
    raw = Serving(before)
    cluster = Versioned(raw)  # type: ignore[arg-type]
    assert [cluster.write(CREATE, "test"), cluster.get(POD_GROUPS, "llama", "team-a")] == [BODY, BODY]
    assert raw.asked.count("discovery") == 1
    raw.serves = after
    assert cluster.write(CREATE, "test") == BODY
    assert (raw.asked[-1], raw.sent[-1]["spec"]["disruptionMode"]) == (version, mode)


def test_an_api_that_is_switched_on_later_is_used_at_once() -> None:
    """A step that still believes it is off lets pods go ungrouped; composites are seen by the next sweep."""
    raw = Serving(OFF)
    cluster = Versioned(raw)  # type: ignore[arg-type]
    assert not cluster.scheduling().served
    with pytest.raises(errors.ApiGone):
        cluster.write(CREATE, "test")
    raw.serves = NEW
    assert cluster.scheduling().served
    raw.serves = NEW | {"v1alpha3/compositepodgroups"}
    cluster.refresh()
    assert cluster.scheduling().composites
