"""Requests with the token of a function's service account, limited by eventing/security/accounts."""

from __future__ import annotations

from typing import Any

from muster.data import EVENTING
from muster.simulator.apiserver import resource_definitions
from muster.simulator.overlays import Manifest, load
from tests.cluster import manifests
from tests.cluster.api import APPLY, JSON, MERGE_PATCH, KubernetesApi
from tests.cluster.processes import until
from tests.contract.bodies import DEFINITIONS, Object, config_map, core
from tests.contract.case import Conversation
from tests.support.overlays import objects_in, objects_of

NAMESPACE = "muster-system"
POLICIES = objects_in("security/accounts")
RBAC = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
ROLES = [manifest for manifest in objects_in("rbac") if manifest["kind"] in RBAC]
REFUSED_BY = "ValidatingAdmissionPolicy"
PATIENCE = 60
"""Seconds to wait until a real server has read new roles and policies."""


WORKLOAD_REF = {"workloadName": "work", "templateName": "main"}

SHARED = "muster"
"""The account of all functions in the overlay one-service."""
ONE_SERVICE = objects_of("one-service")

SUSPENDING = [
    manifest
    for manifest in load(EVENTING / "components" / "suspend-after-timeout")
    if manifest["kind"] in {"ClusterRole", "ClusterRoleBinding"}
]
"""What the component lets resize-gang do."""


def of_account(name: str, objects: list[Manifest]) -> list[Manifest]:
    """Return the objects of a service account: those that have its name, with or without `muster-`."""
    return [one for one in objects if one["metadata"]["name"].removeprefix("muster-") == name]


def roles_of(name: str) -> list[Manifest]:
    """Return a service account of Muster's with its roles and their bindings."""
    if name == SHARED:
        return [one for one in ONE_SERVICE if one["kind"] in RBAC and "source" not in one["metadata"]["name"]]
    return of_account(name, ROLES) + (SUSPENDING if name == "resize-gang" else [])


def shared_account(api: Conversation, *misuses: tuple[Any, ...]) -> Conversation:
    """Return a conversation with the token of the shared account, once the server limits what it writes.

    Args:
        api: the conversation as administrator.
        misuses: as of `account`, one for each policy that the case is about.
    """
    policies = [one for one in ONE_SERVICE if one["kind"].startswith(REFUSED_BY)]
    manifests.apply(api.api, policies)
    user = api.as_user(api.token_of(NAMESPACE, SHARED), "muster-emit-conditions")
    for misuse in misuses:
        _wait_until_refused(user, *misuse)
    return user


def account(api: Conversation, name: str, *misuse: Any) -> Conversation:
    """Return a conversation with the token of a function's account, once the server limits what it writes.

    Args:
        api: the conversation as administrator.
        name: of the service account, `patch-pods`.
        misuse: method, path, body and content type of a request that its policy refuses; sent as a dry run
            until it is refused, because a real server reads policies and roles from caches.
    """
    manifests.apply(api.api, of_account(name, POLICIES))
    user = api.as_user(api.token_of(NAMESPACE, name), f"muster-{name}")
    _wait_until_refused(user, *misuse)
    return user


def _wait_until_refused(user: Conversation, *misuse: Any) -> None:
    """Send a request of `account` as a dry run until a policy refuses it."""
    method, path, body, content_type = (*misuse, JSON)[:4]

    def refused() -> bool:
        answer = user.api.request(method, path, body, content_type, {"dryRun": "All"})
        return REFUSED_BY in answer.message

    assert until(refused, PATIENCE), f"{method} {path} is not refused"


def grant(api: Conversation, component: str) -> None:
    """Apply the policies of a component; its roles are granted with the token, where there are roles."""
    objects = load(EVENTING / "components" / component)
    manifests.apply(api.api, [body for body in objects if body["kind"].startswith(REFUSED_BY)])


def serve(api: KubernetesApi, *names: str) -> None:
    """Have the embedded server serve JobSets or the Trainer's kinds; the real ones do so already."""
    for definition in resource_definitions(*names):
        if not api.request("GET", f"{DEFINITIONS}/{definition['metadata']['name']}").ok:
            api.must("POST", DEFINITIONS, definition)


def uid_of(obj: Any) -> str:
    """The UID of a stored object."""
    return str(obj["metadata"]["uid"])


OUR_WORKLOAD, OUR_GROUP = "owner-ours", "owner-ours-0123abcd"
"""The names of `musters` objects that are called `ours`, of a Job that is called `owner`."""


def musters(body: Any, owner: Any) -> Any:
    """An object as Muster creates it for a Job: named after it, with its labels, controlled by it.

    A Workload has a hash behind the name of its Job, a group the first digits of a UID behind its own name.
    """
    labels = {"app.kubernetes.io/managed-by": "muster", "muster.dev/owner-uid": uid_of(owner)}
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
    }
    digits = "" if body["kind"] == "Workload" else "-0123abcd"
    name = f"{reference['name']}-{body['metadata']['name']}{digits}"
    metadata = {**body["metadata"], "name": name, "labels": labels, "ownerReferences": [reference]}
    spec = {"controllerRef": controller_of(reference), **body["spec"]} if not digits else body["spec"]
    return {**body, "metadata": metadata, "spec": spec}


def controller_of(reference: Any) -> Object:
    """The controllerRef of a Workload for an ownerReference."""
    group = reference["apiVersion"].rpartition("/")[0]
    return {"apiGroup": group, "kind": reference["kind"], "name": reference["name"]}


def odd_controllers(own: Object) -> list[Object]:
    """Return a Workload of Muster's whose controllerRef is not its owner."""
    spec = own["spec"]
    others = (
        {"name": "other"},
        {"name": "n" * 253},
        {"kind": "CronJob"},
        {"kind": "k" * 1000},
        {"apiGroup": ""},
        {"apiGroup": "bat"},
        {"apiGroup": "example.com"},
    )
    odd = [{**own, "spec": {**spec, "controllerRef": {**spec["controllerRef"], **other}}} for other in others]
    return [*odd, {**own, "spec": {name: spec[name] for name in spec if name != "controllerRef"}}]


def refused(answer: Any, policy: str) -> bool:
    """Whether the policy of an account refused a request, in its own name."""
    return answer.status == 403 and f"{REFUSED_BY} 'muster-{policy}'" in answer.message


def merge(api: Conversation, path: str, body: Any) -> Any:
    """Send a merge patch and return the answer."""
    return api.request("PATCH", path, body, MERGE_PATCH)


def apply_again(api: Conversation, path: str, stored: Any, manager: str) -> Any:
    """Apply the conditions that a status has, under the name of a manager; returns the answer."""
    body = {key: stored[key] for key in ("apiVersion", "kind")}
    body |= {"metadata": {"name": stored["metadata"]["name"]}}
    body |= {"status": {"conditions": stored["status"]["conditions"]}}
    return api.request("PATCH", path, body, APPLY, {"fieldManager": manager, "force": "true"})


def applied(api_version: str, subresource: str) -> Object:
    """An entry of managedFields of one of Muster's names, of which an object may have any number."""
    return {
        "manager": "muster-patch-pods",
        "operation": "Apply",
        "apiVersion": api_version,
        "subresource": subresource,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:phase": {}}},
        "time": "2026-01-01T00:00:00Z",
    }


BEYOND_YEAR_9999 = "9999-12-31T23:59:59-23:59"
"""A time that is stored as one of the year 10000 in UTC, which no client in Go can read."""


def unreadable_managed_fields(api_version: str) -> list[Object]:
    """Return managedFields with which an object of a built-in kind could be patched no more."""
    return [applied(api_version, "") | {"time": BEYOND_YEAR_9999}]


def long_managed_fields(api_version: str, *, fields: int = 5000, letter: str = "field") -> list[Object]:
    """Return managedFields of more than 64 KiB, or of so many fields."""
    invented: Object = {"f:status": {f"f:{letter}-{number:05}": {} for number in range(fields)}}
    return [applied(api_version, "") | {"fieldsV1": invented}]


def odd_groups(own: Object) -> list[Object]:
    """Return a group or Workload of Muster's with metadata that no step writes."""
    metadata, fields = own["metadata"], 15_000 if own["kind"] == "Workload" else 5_000
    more: list[Object] = [
        {"labels": {**metadata["labels"], **{f"example.com/{number}": "" for number in range(7)}}},
        {"annotations": {f"example.com/{number}": "" for number in range(9)}},
        {"annotations": {"example.com/long": "x" * 2_049}},
        {"annotations": {"muster.dev/pod-group-policy": "x" * 65_537}},
        {"ownerReferences": [*metadata["ownerReferences"], *(_secret(f"{number}") for number in range(2))]},
        {"ownerReferences": [*metadata["ownerReferences"], _secret("x" * 254)]},
        {"managedFields": long_managed_fields(own["apiVersion"], fields=fields)},
        {"managedFields": unreadable_managed_fields(own["apiVersion"])},
    ]
    return [{**own, "metadata": {**metadata, **odd}} for odd in more]


def odd_names(own: Object) -> list[Object]:
    """Return a group or Workload of Muster's with names of users' own objects, and owners of other kinds."""
    metadata, reference = own["metadata"], own["metadata"]["ownerReferences"][0]
    names = ("theirs", f"{reference['name']}-theirs-nightly", "theirs-main-0123abcd")
    owners = (
        {"kind": "Secret"},
        {"apiVersion": "example.com/v1"},
        {"apiVersion": "trainer.kubeflow.org/v9", "kind": "TrainJob"},
        {"apiVersion": "jobset.x-k8s.io/v9", "kind": "JobSet"},
        {"blockOwnerDeletion": True},
    )
    seconds = (
        _secret("a"),
        owning_workload(blockOwnerDeletion=True),
        owning_workload(apiVersion="scheduling.k8s.io/v9"),
    )
    more: list[Object] = [
        *({"name": name} for name in names),
        *({"ownerReferences": [{**reference, **owner}]} for owner in owners),
        *({"ownerReferences": [reference, second]} for second in seconds),
    ]
    return [{**own, "metadata": {**metadata, **fields}} for fields in more]


def odd_specs(own: Object) -> list[Object]:
    """Return a group of Muster's below a stranger's, and fallback groups that keep pods waiting."""
    metadata, spec = own["metadata"], {**own["spec"], "workloadRef": WORKLOAD_REF}
    owner = metadata["ownerReferences"][0]["name"]
    strangers = ("theirs", f"{owner}-theirs", "theirs-main-0123abcd")
    below = [{**own, "spec": {**spec, "parentCompositePodGroupName": name}} for name in strangers]
    fallback = {**metadata, "annotations": {"muster.dev/fallback": "NotMarked: labels of another owner"}}
    basic: Object = {"schedulingPolicy": {"basic": {}}}
    odd: list[Object] = [
        {"parentCompositePodGroupName": f"{owner}-all-0123abcd", "workloadRef": WORKLOAD_REF},
        {"workloadRef": WORKLOAD_REF},
    ]
    if own["kind"] == "PodGroup":  # a CompositePodGroup without workloadRef is invalid
        odd.append({"schedulingConstraints": {"topology": [{"key": "example.com/none"}]}})
    waiting = [{**own, "metadata": fallback, "spec": {**basic, **fields}} for fields in odd]
    return [*below, {**own, "metadata": fallback}, *waiting]


def owning_workload(**fields: Any) -> Object:
    """An ownerReference to a Workload, as a group has beside that to its controller."""
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "name": "a",
        "uid": "uid-a",
        **fields,
    }


def _secret(name: str) -> Object:
    """An ownerReference."""
    return {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": f"uid-{name[:8]}"}


def event(ns: str, about: Object, component: str) -> Object:
    """An Event as `create_event` of muster/policy/groups/manifests.py makes it."""
    moment = "2026-01-01T00:00:00Z"
    return {
        "metadata": {"name": f"{about['metadata']['name']}.{component}", "namespace": ns},
        "involvedObject": {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "namespace": ns,
            "name": about["metadata"]["name"],
            "uid": uid_of(about),
        },
        "type": "Warning",
        "reason": "RefusedByApi",
        "message": "a quota",
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }


def try_events(function: Conversation, ns: str, about: Any, name: str) -> None:
    """Create an Event about an object as an account's step does, and those that its policy refuses."""
    path, own = core(ns, "events"), event(ns, about, f"muster-{name}")
    function.must("POST", path, own)
    misuses = [event(ns, about, "kubelet"), event(ns, {**about, "kind": "Secret"}, f"muster-{name}")]
    for misuse in (*misuses, *odd_events(own)):
        misuse["metadata"]["name"] += ".forged"
        assert refused(function.request("POST", path, misuse), name), misuse


def odd_events(own: Object) -> list[Object]:
    """Return an Event of a step with what no step writes: other fields, and texts of any length."""
    odd = [
        {**own, "related": own["involvedObject"]},
        {**own, "message": "x" * 1025},
        {**own, "involvedObject": {**own["involvedObject"], "fieldPath": "x" * 254}},
        {**own, "source": {**own["source"], "host": "x" * 254}},
        {**own, "firstTimestamp": BEYOND_YEAR_9999},
        {**own, "lastTimestamp": BEYOND_YEAR_9999},
        {**own, "count": -1},
        {**own, "type": "Error"},
    ]
    more: list[Object] = [
        {"finalizers": ["example.com/never"]},
        {"annotations": {"a": "b"}},
        {"labels": {"a": "b"}},
        {"ownerReferences": [_secret("a")]},
        {"managedFields": long_managed_fields("v1")},
        {"managedFields": unreadable_managed_fields("v1")},
    ]
    odd += [{**own, "metadata": {**own["metadata"], **fields}} for fields in more]
    return [{**one, "metadata": {**one["metadata"]}} for one in odd]


def dead_letter(name: str) -> Object:
    """Return the ConfigMap of a dead letter as `to_config_map` of muster/events/dead_letters.py makes it."""
    labels = {"app.kubernetes.io/managed-by": "muster", "muster.dev/dead-letter": "true"}
    return config_map(name, labels=labels, data={"whole": "true", "event.json": "{}"})


def odd_dead_letters() -> list[Object]:
    """Return dead letters with what dead-letter does not write: other fields, and texts of any length."""
    letter = dead_letter("dead-letter-0123456789ac")
    metadata = letter["metadata"]
    more: list[Object] = [
        {"finalizers": ["example.com/never"]},
        {"annotations": {"a": "b"}},
        {"labels": {**metadata["labels"], "grafana_dashboard": "1"}},
        {"ownerReferences": [_secret("a")]},
        {"managedFields": long_managed_fields("v1")},
        {"managedFields": unreadable_managed_fields("v1")},
    ]
    return [
        *({**letter, "metadata": {**metadata, **fields}} for fields in more),
        {**letter, "data": {"other": "x"}},
        {**letter, "data": {"event.json": "x" * 131_073}},
        {**letter, "data": dict.fromkeys(("about", "event.json"), "x" * 65_537)},
        {**letter, "binaryData": {"about": "eA=="}},
    ]
