"""What can be done with the tokens of patch-pods and dead-letter, which write pods and ConfigMaps."""

from __future__ import annotations

from typing import Any

from tests.cluster.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.accounts import (
    NAMESPACE,
    account,
    applied,
    dead_letter,
    long_managed_fields,
    merge,
    odd_dead_letters,
    refused,
    uid_of,
    unreadable_managed_fields,
)
from tests.contract.bodies import Object, config_map, core, gated, pod
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
GATE, OTHER = "muster.dev/pod-group", "example.com/wait"
IMAGE: Object = {"spec": {"containers": [{"name": "main", "image": "evil:1"}]}}


def _patch_pods(api: Conversation, ns: str) -> Conversation:
    path = core(ns, "pods", "probe")
    api.must("POST", core(ns, "pods"), gated("probe", GATE))
    return account(api, "patch-pods", "PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)


def _without(gate: str, made: Object) -> Object:
    """The patch of the plan: `remove_gate` in muster/policy/plans/patch_pods.py."""
    return {
        "metadata": {"uid": uid_of(made), "labels": {"muster.dev/gated": None}},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": gate}]},
    }


def _gates(obj: Object) -> list[str]:
    return [gate["name"] for gate in obj["spec"].get("schedulingGates") or []]


@case(releases=BOTH)
def gate_is_taken_away(api: Conversation, ns: str) -> None:
    """patch-pods takes Muster's gate and its label from a pod, twice if need be, and keeps the others."""
    function, path = _patch_pods(api, ns), core(ns, "pods", "held")
    body = gated("held", OTHER, GATE)
    body["metadata"]["labels"] = {"muster.dev/gated": "true", "team": "a"}
    made = api.must("POST", core(ns, "pods"), body)
    for _ in range(2):
        left = function.must("PATCH", path, _without(GATE, made), STRATEGIC_PATCH)
        assert (_gates(left), left["metadata"]["labels"]) == ([OTHER], {"team": "a"})


@case(releases=BOTH)
def managed_fields_stay_short(api: Conversation, ns: str) -> None:
    """patch-pods may not fill a pod by managedFields: many entries, a long one, wide characters."""
    function, path = _patch_pods(api, ns), core(ns, "pods", "held")
    made = api.must("POST", core(ns, "pods"), gated("held", OTHER))  # whose gates it may leave as they are
    many = [applied("v1", f"invented-{number}") for number in range(1000)]
    wide = long_managed_fields("v1", fields=1500, letter="\N{GRINNING FACE}" * 10)
    for entries in (many, long_managed_fields("v1"), wide):
        assert refused(_managed(function, path, made, entries), "patch-pods")
    assert _managed(function, path, made, many[:10]).status == 200


@case(releases=BOTH)
def times_stay_readable(api: Conversation, ns: str) -> None:
    """patch-pods may not write a time that no client can read: the pod could be patched no more."""
    function, path = _patch_pods(api, ns), core(ns, "pods", "held")
    made = api.must("POST", core(ns, "pods"), gated("held", OTHER))  # whose gates it may leave as they are
    assert refused(_managed(function, path, made, unreadable_managed_fields("v1")), "patch-pods")
    untimed = [{key: one[key] for key in one if key != "time"} for one in unreadable_managed_fields("v1")]
    assert _managed(function, path, made, untimed).status == 200


@case(releases=BOTH)
def long_managed_fields_of_others_stay(api: Conversation, ns: str) -> None:
    """patch-pods may patch a pod of long managedFields, but not make those of others longer."""
    function, path = _patch_pods(api, ns), core(ns, "pods", "held")
    made = api.must("POST", core(ns, "pods"), gated("held", OTHER, GATE))
    theirs = [entry | {"manager": "theirs"} for entry in long_managed_fields("v1")]
    long = _managed(api, path, made, theirs).body
    left = function.must("PATCH", path, _without(GATE, long), STRATEGIC_PATCH)
    assert _gates(left) == [OTHER]
    thief = [applied("v1", "") | {"manager": "thief"}]
    for entries in (thief, long_managed_fields("v1")):
        assert refused(_managed(function, path, left, entries), "patch-pods")


@case(releases=BOTH)
def long_managed_fields_of_its_own_name_hold_no_gate(api: Conversation, ns: str) -> None:
    """patch-pods ungates a pod for which a user wrote long managedFields under its name, but adds no more."""
    function, path = _patch_pods(api, ns), core(ns, "pods", "held")
    made = api.must("POST", core(ns, "pods"), gated("held", OTHER, GATE))
    long = _managed(api, path, made, long_managed_fields("v1")).body
    left = function.must("PATCH", path, _without(GATE, long), STRATEGIC_PATCH)
    assert _gates(left) == [OTHER]
    entries = [one for one in left["metadata"]["managedFields"] if one["manager"] != "muster-patch-pods"]
    for fields, status in ((4999, 200), (5000, 403)):
        mine = long_managed_fields("v1", fields=fields)
        answer = merge(function, path, {"metadata": {"managedFields": [*entries, *mine]}})
        assert answer.status == status, fields
    assert refused(answer, "patch-pods")


def _managed(api: Conversation, path: str, made: Object, entries: list[Object]) -> Any:
    """Add entries to the managedFields of a pod; returns the answer."""
    return merge(api, path, {"metadata": {"managedFields": [*made["metadata"]["managedFields"], *entries]}})


@case(releases=BOTH)
def pods_of_many_labels_are_not_compared(api: Conversation, ns: str) -> None:
    """A pod of a thousand labels is refused before they are gone through, which takes quadratic time."""
    function, path = _patch_pods(api, ns), core(ns, "pods", "held")
    body = gated("held", GATE)
    body["metadata"]["labels"] = {f"example.com/{number}": "" for number in range(1001)}
    made = api.must("POST", core(ns, "pods"), body)
    assert refused(function.request("PATCH", path, _without(GATE, made), STRATEGIC_PATCH), "patch-pods")


@case(releases=BOTH)
def gates_of_others_stay(api: Conversation, ns: str) -> None:
    """patch-pods may not take away another controller's gate, alone or with Muster's own."""
    function, path = _patch_pods(api, ns), core(ns, "pods", "held")
    made = api.must("POST", core(ns, "pods"), gated("held", OTHER, GATE))
    assert refused(function.request("PATCH", path, _without(OTHER, made), STRATEGIC_PATCH), "patch-pods")
    assert refused(merge(function, path, {"spec": {"schedulingGates": None}}), "patch-pods")
    assert _gates(api.must("GET", path)) == [OTHER, GATE]


@case(releases=BOTH)
def rest_of_a_pod_stays(api: Conversation, ns: str) -> None:
    """patch-pods may change nothing else of a pod, neither alone nor beside the gate."""
    function, path = _patch_pods(api, ns), core(ns, "pods", "other")
    made = api.must("POST", core(ns, "pods"), gated("other", OTHER))  # whose gates it may leave as they are
    api.must("POST", core(ns, "pods"), gated("held", OTHER, GATE))
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "probe", "uid": "12345678"}
    tolerations = [*made["spec"]["tolerations"], {"key": "gpu", "operator": "Exists"}]
    misuses: list[Any] = [
        {"metadata": {"labels": {"muster.dev/group": "mine"}}},
        {"metadata": {"labels": {"muster.dev/gated": "true"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"ownerReferences": [owner]}},
        {"metadata": {"finalizers": ["example.com/never"]}},
        {"spec": {"containers": [{"name": "main", "image": "evil:1"}]}},
        {"spec": {"tolerations": tolerations}},
        {"spec": {"nodeSelector": {"zone": "a"}}},
        {"spec": {"activeDeadlineSeconds": 1}},
    ]
    for misuse in misuses:
        assert refused(merge(function, path, misuse), "patch-pods"), misuse
        beside = {**misuse, "spec": {**misuse.get("spec", {}), "schedulingGates": [{"name": OTHER}]}}
        assert refused(merge(function, core(ns, "pods", "held"), beside), "patch-pods"), misuse
    assert api.must("GET", path)["spec"] == made["spec"]


@case(releases=BOTH)
def system_pods_stay(api: Conversation, ns: str) -> None:
    """patch-pods may not change the image of a pod of kube-system; an administrator may."""
    function, path = _patch_pods(api, ns), core("kube-system", "pods", "proxy")
    api.request("DELETE", path)
    api.must("POST", core("kube-system", "pods"), pod("proxy"))
    assert refused(function.request("PATCH", path, IMAGE, STRATEGIC_PATCH), "patch-pods")
    changed = api.must("PATCH", path, IMAGE, STRATEGIC_PATCH)
    assert changed["spec"]["containers"][0]["image"] == "evil:1"
    api.must("DELETE", path)


@case(releases=BOTH)
def pods_are_updated_by_others(api: Conversation, ns: str) -> None:
    """The policy of patch-pods is about no one else's requests."""
    _patch_pods(api, ns)
    path = core(ns, "pods", "held")
    api.must("POST", core(ns, "pods"), gated("held", OTHER, GATE))
    api.must("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)
    remove = [{"op": "remove", "path": "/spec/schedulingGates/0"}]
    assert _gates(api.must("PATCH", path, remove, JSON_PATCH)) == [GATE]


@case(releases=BOTH)
def dead_letters_alone(api: Conversation, ns: str) -> None:
    """dead-letter may create and delete dead letters, and no other ConfigMap of its namespace."""
    del ns
    api.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    path = core(NAMESPACE, "configmaps")
    function = account(api, "dead-letter", "POST", path, config_map("probe"))
    name = "dead-letter-0123456789ab"
    letter, of_team = f"{path}/{name}", f"{path}/settings"
    for left in (letter, of_team):
        api.api.request("DELETE", left)
    labels = {"app.kubernetes.io/managed-by": "muster", "muster.dev/dead-letter": "true"}
    function.must("POST", path, dead_letter(name))
    for misuse in odd_dead_letters():
        assert refused(function.request("POST", path, misuse), "dead-letter"), misuse
    policy = config_map("muster-policy", labels=labels)
    assert refused(function.request("POST", path, policy), "dead-letter")
    assert refused(function.request("POST", path, config_map("mine")), "dead-letter")
    api.must("POST", path, config_map("settings"))
    assert refused(function.request("DELETE", of_team), "dead-letter")
    function.must("DELETE", letter)
    api.must("DELETE", of_team)
