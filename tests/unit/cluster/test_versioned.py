"""Objects have the shape of v1beta1 whichever version the cluster serves, also when that changes."""

# ruff: noqa: ARG002 - the cluster of these tests answers any request for a kind alike

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.interface import Object, Objects
from muster.cluster.paging import Page
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.objects.resources import (
    COMPOSITE_POD_GROUPS,
    JOBS,
    JOBSETS,
    POD_GROUPS,
    WORKLOADS,
    Resource,
    by_kind,
)
from muster.objects.versions import HOW_TO_SWITCH_ON
from muster.policy.model import Action, Verb

NEW = frozenset({"v1beta1/workloads", "v1beta1/podgroups"})
OLD = frozenset({"v1alpha2/workloads", "v1alpha2/podgroups"})
WITH_COMPOSITES = NEW | {"v1alpha3/compositepodgroups"}
NONE = frozenset({"v1/priorityclasses"})
NAMESPACE = "team-a"
GROUP = "scheduling.k8s.io"


@dataclass
class Serving:
    """A cluster that serves these versions, echoes what it is sent, and remembers each request."""

    serves: frozenset[str] = NEW
    asked: list[str] = field(default_factory=list)
    sent: list[Any] = field(default_factory=list)

    def served_versions(self, group: str) -> frozenset[str]:
        """What is served; remembered as `discovery`."""
        assert group == GROUP
        self.asked.append("discovery")
        return self.serves

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """An object in the version that was asked for."""
        self._request("get", resource)
        return None if name == "missing" else self._object(resource, name)

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """One object."""
        return self.page(resource, namespace, labels=labels, fields=fields, as_of=as_of).objects

    def page(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        as_of: str = "",
        token: str = "",
    ) -> Page:
        """One object."""
        self._request("list", resource)
        return Page([self._object(resource, "llama")])

    def write(self, action: Action, manager: str) -> Object:
        """What was sent; an object after a patch, nothing after a deletion."""
        target = action.target
        version = target.api_version.rpartition("/")[2]
        resource = replace(by_kind(target.api_version, target.kind), version=version)
        self._request(str(action.verb), resource, list(action.operations) or action.body)
        if action.verb is Verb.PATCH:
            return self._object(resource, target.name)
        return dict(action.body or {})

    def _request(self, verb: str, resource: Resource, body: Any = None) -> None:
        self.asked.append(f"{verb} {resource.version}/{resource.plural}")
        if resource.group == GROUP and f"{resource.version}/{resource.plural}" not in self.serves:
            raise errors.ApiGone("404 page not found", status=404)
        self.sent.append(body)

    def _object(self, resource: Resource, name: str) -> Object:
        mode: Any = "Pod" if resource.version == "v1alpha2" else {"single": {}}
        metadata = {"name": name}
        body: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        return {**body, "spec": {"disruptionMode": mode}}


BODY: Object = {
    "apiVersion": POD_GROUPS.api_version,
    "kind": "PodGroup",
    "metadata": {"name": "llama"},
    "spec": {"disruptionMode": {"single": {}}},
}


def _ref(resource: Resource) -> ObjectRef:
    """An object of this kind."""
    return ObjectRef(resource.api_version, resource.kind, NAMESPACE, "llama")


CREATE = Action(Verb.CREATE, _ref(POD_GROUPS), BODY)


@pytest.mark.parametrize(
    ("serves", "version", "mode"), [(NEW, "v1beta1", {"single": {}}), (OLD, "v1alpha2", "Pod")]
)
def test_every_verb_uses_the_served_version(serves: frozenset[str], version: str, mode: Any) -> None:
    """The path and the body are of the served version, what comes back is always v1beta1."""
    raw = Serving(serves)
    cluster = Versioned(raw)
    answers = [
        cluster.write(CREATE, "test"),
        cluster.get(POD_GROUPS, "llama", NAMESPACE),
        *cluster.list(POD_GROUPS, NAMESPACE),
        cluster.write(Action(Verb.PATCH, _ref(POD_GROUPS), BODY, patch=PatchType.MERGE), "test"),
    ]
    cluster.write(Action(Verb.DELETE, _ref(POD_GROUPS)), "test")

    assert answers == [BODY] * 4
    verbs = ("create", "get", "list", "patch", "delete")
    assert raw.asked == ["discovery", *(f"{verb} {version}/podgroups" for verb in verbs)]
    assert [body["spec"]["disruptionMode"] for body in raw.sent if body] == [mode, mode]


def test_a_json_patch_goes_as_it_is() -> None:
    """It is a list of paths, and those that Muster changes are the same in both versions."""
    raw, change = Serving(OLD), {"op": "replace", "path": "/metadata/labels/a", "value": "b"}
    patch = Action(Verb.PATCH, _ref(WORKLOADS), patch=PatchType.JSON, operations=(change,))
    Versioned(raw).write(patch, "test")
    assert raw.sent == [[change]]


def test_a_missing_object_is_none() -> None:
    """A missing object is no missing API: it is not asked again what is served."""
    raw = Serving(OLD)
    assert Versioned(raw).get(WORKLOADS, "missing", NAMESPACE) is None
    assert raw.asked == ["discovery", "get v1alpha2/workloads"]


@pytest.mark.parametrize("resource", [JOBS, JOBSETS])
def test_other_kinds_are_passed_on(resource: Resource) -> None:
    """Nothing is discovered for them and nothing translated, JobSet's own v1alpha2 included."""
    raw = Serving(NONE)
    cluster = Versioned(raw)
    assert cluster.get(resource, "llama", NAMESPACE) == raw._object(resource, "llama")
    cluster.write(Action(Verb.UPDATE, _ref(resource), {"kind": resource.kind}), "test")
    assert raw.asked == [
        f"get {resource.version}/{resource.plural}",
        f"update {resource.version}/{resource.plural}",
    ]


@pytest.mark.parametrize(
    ("before", "after", "version"),
    [
        pytest.param(OLD, NEW, "v1beta1", id="an upgrade to 1.37"),
        pytest.param(NEW, OLD, "v1alpha2", id="back to 1.36"),
    ],
)
def test_a_version_that_goes_away_is_replaced_by_the_one_that_came(
    before: frozenset[str], after: frozenset[str], version: str
) -> None:
    """It is noticed at the first 404, in the same call."""
    raw = Serving(before)
    cluster = Versioned(raw)
    cluster.get(WORKLOADS, "llama", NAMESPACE)
    raw.serves = after
    assert cluster.write(CREATE, "test") == BODY
    assert raw.asked.count("discovery") == 2
    assert cluster.scheduling().version == version


def test_while_it_is_off_every_need_asks_again() -> None:
    """Switched on later it is used at once: a step that still believes it is off lets pods go ungrouped."""
    raw = Serving(NONE)
    cluster = Versioned(raw)
    assert not cluster.scheduling().served
    raw.serves = NEW
    assert cluster.scheduling().served
    assert cluster.get(POD_GROUPS, "llama", NAMESPACE) is not None


def test_while_it_is_on_it_is_asked_once() -> None:
    """Discovery is three requests; an event must not pay for them."""
    raw = Serving(NEW)
    cluster = Versioned(raw)
    for _ in range(3):
        cluster.get(POD_GROUPS, "llama", NAMESPACE)
    assert raw.asked.count("discovery") == 1


def test_a_sweep_asks_again() -> None:
    """The gate CompositePodGroup gives no 404 when it is switched on."""
    raw = Serving(NEW)
    cluster = Versioned(raw)
    assert not cluster.scheduling().composites
    raw.serves = WITH_COMPOSITES
    assert not cluster.scheduling().composites
    cluster.refresh()
    assert cluster.scheduling().composites


def test_switched_off_it_is_gone_and_says_how_to_switch_it_on() -> None:
    """The step ends with ApiNotServed; the words name gate and runtime-config."""
    raw = Serving(NEW)
    cluster = Versioned(raw)
    cluster.get(WORKLOADS, "llama", NAMESPACE)
    raw.serves = NONE
    with pytest.raises(errors.ApiGone, match=re.escape(HOW_TO_SWITCH_ON[:60])):
        cluster.write(CREATE, "test")
    assert not cluster.scheduling().served


def test_composites_that_go_away_are_not_believed_in_any_longer() -> None:
    """The next event sees that its policy cannot be had, without waiting for a sweep."""
    raw = Serving(WITH_COMPOSITES)
    cluster = Versioned(raw)
    assert cluster.scheduling().composites
    raw.serves = NEW
    with pytest.raises(errors.ApiGone):
        cluster.get(COMPOSITE_POD_GROUPS, "llama", NAMESPACE)
    assert not cluster.scheduling().composites
