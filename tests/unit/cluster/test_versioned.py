"""Objects have the shape of v1beta1 whichever version the cluster serves, also when that changes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.interface import Object, Objects
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.objects.resources import POD_GROUPS, WORKLOADS, Resource, by_kind
from muster.policy.model import Action, Verb

NEW = frozenset({"v1beta1/workloads", "v1beta1/podgroups"})
OLD = frozenset({"v1alpha2/workloads", "v1alpha2/podgroups"})
OFF = frozenset({"v1/priorityclasses"})
NAMESPACE = "team-a"


@dataclass
class Serving:
    """A cluster that serves these versions, echoes what it is sent, and remembers each request."""

    serves: frozenset[str] = NEW
    asked: list[str] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)

    def served_versions(self, _group: str) -> frozenset[str]:
        """What is served; remembered as `discovery`."""
        self.asked.append("discovery")
        return self.serves

    def get(self, resource: Resource, name: str, _namespace: str = "") -> Object | None:
        """An object in the version that was asked for."""
        self._request("get", resource)
        return self._object(resource, name)

    def list(self, resource: Resource, _namespace: str = "", **_: str) -> Objects:
        """One object."""
        self._request("list", resource)
        return [self._object(resource, "llama")]

    def write(self, action: Action, _manager: str) -> Object:
        """What was sent."""
        target = action.target
        version = target.api_version.rpartition("/")[2]
        resource = replace(by_kind(target.api_version, target.kind), version=version)
        self._request(str(action.verb), resource, list(action.operations) or action.body)
        return dict(action.body or {})

    def _request(self, verb: str, resource: Resource, body: Any = None) -> None:
        self.asked.append(f"{verb} {resource.version}/{resource.plural}")
        if f"{resource.version}/{resource.plural}" not in self.serves:
            raise errors.ApiGone("404 page not found", status=404)
        self.sent.append(body)

    def _object(self, resource: Resource, name: str) -> Object:
        mode: Any = "Pod" if resource.version == "v1alpha2" else {"single": {}}
        body: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
        return {**body, "spec": {"disruptionMode": mode}}


BODY: Object = {
    "apiVersion": POD_GROUPS.api_version,
    "kind": "PodGroup",
    "metadata": {"name": "llama"},
    "spec": {"disruptionMode": {"single": {}}},
}
REF = ObjectRef(POD_GROUPS.api_version, POD_GROUPS.kind, NAMESPACE, "llama")
CREATE = Action(Verb.CREATE, REF, BODY)


@pytest.mark.parametrize(
    ("serves", "version", "mode"), [(NEW, "v1beta1", {"single": {}}), (OLD, "v1alpha2", "Pod")]
)
def test_every_verb_uses_the_served_version(serves: frozenset[str], version: str, mode: Any) -> None:
    """The path and the body are of the served version, what comes back is always v1beta1."""
    raw = Serving(serves)
    cluster: Any = Versioned(raw)  # type: ignore[arg-type]
    answers = [
        cluster.write(CREATE, "test"),
        cluster.get(POD_GROUPS, "llama", NAMESPACE),
        *cluster.list(POD_GROUPS, NAMESPACE),
        cluster.write(Action(Verb.PATCH, REF, BODY, patch=PatchType.MERGE), "test"),
    ]
    cluster.write(Action(Verb.DELETE, REF), "test")
    assert answers == [BODY] * 4
    verbs = ("create", "get", "list", "patch", "delete")
    assert raw.asked == ["discovery", *(f"{verb} {version}/podgroups" for verb in verbs)]
    assert [body["spec"]["disruptionMode"] for body in raw.sent if body] == [mode, mode]


@pytest.mark.parametrize(("before", "after", "version"), [(OLD, NEW, "v1beta1"), (NEW, OLD, "v1alpha2")])
def test_after_an_upgrade_the_new_version_is_used(
    before: frozenset[str], after: frozenset[str], version: str
) -> None:
    """It is noticed at the first 404, in the same call; before, discovery is asked once."""
    raw = Serving(before)
    cluster = Versioned(raw)  # type: ignore[arg-type]
    for _ in range(3):
        cluster.get(WORKLOADS, "llama", NAMESPACE)
    assert raw.asked.count("discovery") == 1
    raw.serves = after
    assert cluster.write(CREATE, "test") == BODY
    assert cluster.scheduling().version == version


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
