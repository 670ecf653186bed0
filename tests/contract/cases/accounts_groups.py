"""What can be done with the tokens of create-workload, create-pod-groups and resize-gang."""

from __future__ import annotations

from typing import Any

from muster.policy.group_labels import is_musters
from tests.cluster.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.accounts import (
    OUR_GROUP,
    OUR_WORKLOAD,
    WORKLOAD_REF,
    account,
    apply_again,
    grant,
    merge,
    musters,
    odd_controllers,
    odd_groups,
    odd_names,
    odd_specs,
    owning_workload,
    refused,
    try_events,
    unreadable_managed_fields,
)
from tests.contract.bodies import (
    Object,
    composite_group,
    condition,
    gang,
    groups,
    job,
    jobs,
    pod_group,
    workload,
)
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
OLDER = ("1.36",)


OTHER_OWNER = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "name": "theirs",
    "uid": "11111111-2222-3333-4444-555555555555",
    "blockOwnerDeletion": True,
}
"""Its deletion in the foreground would wait for that of a group, which pods may keep."""


def _owner(api: Conversation, ns: str) -> Any:
    return api.must("POST", jobs(ns), job("owner"))


def _create_and_delete(api: Conversation, ns: str, version: str) -> None:
    owner = _owner(api, ns)
    workloads, pod_groups = (groups(ns, plural, version=version) for plural in ("workloads", "podgroups"))
    theirs = workload("theirs", version=version)
    function = account(api, "create-workload", "POST", workloads, theirs)
    function.must("POST", workloads, musters(workload("ours", version=version), owner))
    for misuse in odd_controllers(musters(workload("odd", version=version), owner)):
        assert refused(function.request("POST", workloads, misuse), "create-workload"), misuse
    function.must("POST", pod_groups, musters(pod_group("ours", version=version), owner))
    assert refused(function.request("POST", workloads, theirs), "create-workload")
    unowned = musters(workload("unowned", version=version), owner)
    del unowned["metadata"]["ownerReferences"]
    assert refused(function.request("POST", workloads, unowned), "create-workload")
    for path, body in ((workloads, workload), (pod_groups, pod_group)):
        for misuse in odd_groups(musters(body("odd", version=version), owner)):
            assert refused(function.request("POST", path, misuse), "create-workload"), misuse
    blocking = musters(pod_group("blocking", version=version), owner)
    blocking["metadata"]["ownerReferences"].append(OTHER_OWNER)
    assert refused(function.request("POST", pod_groups, blocking), "create-workload")
    api.must("POST", workloads, theirs)
    api.must("POST", pod_groups, pod_group("theirs", version=version))
    for path in (f"{workloads}/theirs", f"{pod_groups}/theirs"):
        assert refused(function.request("DELETE", path), "create-workload")
    for path in (f"{workloads}/{OUR_WORKLOAD}", f"{pod_groups}/{OUR_GROUP}"):
        function.must("DELETE", path)


@case()
def objects_of_users_stay(api: Conversation, ns: str) -> None:
    """create-workload creates and deletes objects of Muster's, and may not delete a user's Workload."""
    _create_and_delete(api, ns, "v1beta1")


@case(releases=OLDER)
def older_objects_of_users_stay(api: Conversation, ns: str) -> None:
    """create-workload is limited on 1.36 too, where another version is served."""
    _create_and_delete(api, ns, "v1alpha2")


@case()
def every_version_is_guarded(api: Conversation, ns: str) -> None:
    """create-workload may not delete a user's Workload by way of another API version."""
    theirs = workload("theirs")
    function = account(api, "create-workload", "POST", groups(ns, "workloads"), theirs)
    api.must("POST", groups(ns, "workloads"), theirs)
    older = groups(ns, "workloads", "theirs", version="v1alpha3")
    assert refused(function.request("DELETE", older), "create-workload")


@case()
def half_labelled_objects_stay(api: Conversation, ns: str) -> None:
    """create-workload may delete what the planner takes for Muster's, and nothing with one of its labels."""
    theirs = workload("theirs")
    function = account(api, "create-workload", "POST", groups(ns, "workloads"), theirs)
    labels = musters(workload("ours"), _owner(api, ns))["metadata"]["labels"]
    for names in ([], *([name] for name in labels), labels):
        theirs["metadata"]["labels"] = {name: labels[name] for name in names}
        api.must("POST", groups(ns, "workloads"), theirs)
        deletion = function.request("DELETE", groups(ns, "workloads", "theirs"))
        assert refused(deletion, "create-workload") != is_musters(theirs["metadata"]["labels"]), names
        api.request("DELETE", groups(ns, "workloads", "theirs"))


@case()
def conditions_by_create_workload(api: Conversation, ns: str) -> None:
    """create-workload may write the same conditions as emit-conditions, and no others."""
    owner = _owner(api, ns)
    path = f"{jobs(ns, 'owner')}/status"
    misuse = {"metadata": {"labels": {"a": "b"}}}
    function = account(api, "create-workload", "PATCH", path, misuse, MERGE_PATCH)
    ours = condition("muster.dev/PodGroupsReady", "False", message="invalid")
    written = function.must("PATCH", path, {"status": {"conditions": [ours]}}, MERGE_PATCH)
    assert refused(apply_again(function, path, written, "thief"), "create-workload")
    for more in (condition("FailureTarget"), condition("SuccessCriteriaMet")):
        patch = {"status": {"conditions": [ours, more]}}
        assert refused(merge(function, path, patch), "create-workload"), more
    try_events(function, ns, owner, "create-workload")


@case()
def groups_are_musters(api: Conversation, ns: str) -> None:
    """create-pod-groups may create groups with Muster's labels and the owner they name, and no others."""
    owner, path = _owner(api, ns), groups(ns, "podgroups")
    function = account(api, "create-pod-groups", "POST", path, pod_group("theirs"))
    composites = groups(ns, "compositepodgroups", version="v1alpha3")
    ours = musters(pod_group("ours"), owner)
    ours["metadata"]["ownerReferences"].append(owning_workload())
    function.must("POST", path, ours)
    function.must("POST", composites, musters(composite_group("ours"), owner))
    assert refused(function.request("POST", path, pod_group("theirs")), "create-pod-groups")
    assert refused(function.request("POST", composites, composite_group("theirs")), "create-pod-groups")
    for misuse in odd_groups(musters(pod_group("odd"), owner)):
        assert refused(function.request("POST", path, misuse), "create-pod-groups"), misuse
    for label in ("app.kubernetes.io/managed-by", "muster.dev/owner-uid"):
        stranger = musters(pod_group("stranger"), owner)
        stranger["metadata"]["labels"][label] = "12345678"
        assert refused(function.request("POST", path, stranger), "create-pod-groups")
    try_events(function, ns, owner, "create-pod-groups")


@case()
def names_are_musters(api: Conversation, ns: str) -> None:
    """create-workload and create-pod-groups take no names that users give, also for owners that live."""
    owner = _owner(api, ns)
    for name, step, plural, body in (
        ("first", "create-workload", "workloads", workload),
        ("second", "create-workload", "podgroups", pod_group),
        ("third", "create-pod-groups", "podgroups", pod_group),
    ):
        path, ours = groups(ns, plural), musters(body(name), owner)
        function = account(api, step, "POST", path, body("theirs"))
        for misuse in odd_names(ours):
            assert refused(function.request("POST", path, misuse), step), misuse
        function.must("POST", path, ours)


def _fallback_groups(api: Conversation, ns: str, version: str, disruption: Any) -> None:
    owner, path = _owner(api, ns), groups(ns, "podgroups", version=version)
    for step in ("create-workload", "create-pod-groups"):
        function = account(api, step, "POST", path, pod_group("theirs", version=version))
        group = musters(pod_group(step, version=version), owner)
        group["metadata"]["name"] = f"copied-{step}-0123abcd-3-0"
        assert refused(function.request("POST", path, group), step)
        group["metadata"]["annotations"] = {"muster.dev/fallback": "NotMarked: labels of another owner"}
        assert refused(function.request("POST", path, group), step)
        group["spec"]["schedulingPolicy"] = {"basic": {}}
        together = {**group, "spec": {**group["spec"], "disruptionMode": disruption}}
        answer = function.request("POST", path, together, query={"dryRun": "All"})
        assert refused(answer, step) == (version == "v1beta1"), "1.36 drops the field without its gate"
        function.must("POST", path, group)


@case()
def fallback_groups_are_named_after_labels(api: Conversation, ns: str) -> None:
    """create-workload and create-pod-groups may create them for pods with labels of another owner."""
    _fallback_groups(api, ns, "v1beta1", {"all": {}})


@case(releases=OLDER)
def older_fallback_groups_are_named_after_labels(api: Conversation, ns: str) -> None:
    """On 1.36 the API server shows policies a podGroupTemplateRef of null, which no step writes."""
    _fallback_groups(api, ns, "v1alpha2", "PodGroup")


@case()
def groups_are_below_those_of_their_owner(api: Conversation, ns: str) -> None:
    """No token puts a group into a user's tree of groups, or a gang in place of a fallback group."""
    owner, version = _owner(api, ns), "v1alpha3"
    root = {"workloadRef": WORKLOAD_REF, "parentCompositePodGroupName": "owner-all-0123abcd"}
    for step, plural, body in (
        ("create-workload", "podgroups", pod_group),
        ("create-pod-groups", "podgroups", pod_group),
        ("create-pod-groups", "compositepodgroups", composite_group),
        ("resize-gang", "compositepodgroups", composite_group),
    ):
        path = groups(ns, plural, version=version)
        function = account(api, step, "POST", path, body("theirs", version=version))
        ours = musters(body(step, version=version), owner)
        for misuse in odd_specs(ours):
            assert refused(function.request("POST", path, misuse), step), misuse
        function.must("POST", path, {**ours, "spec": {**ours["spec"], **root}})


def _resize(api: Conversation, ns: str, version: str) -> tuple[Conversation, Object]:
    """The token of resize-gang, and an owner with a Workload and a PodGroup beside those of a user."""
    owner = _owner(api, ns)
    for plural, body in (("workloads", workload), ("podgroups", pod_group)):
        path = groups(ns, plural, version=version)
        api.must("POST", path, musters(body("ours", version=version), owner))
        api.must("POST", path, body("theirs", version=version))
    theirs = groups(ns, "podgroups", "theirs", version=version)
    misuse = {"metadata": {"labels": {"a": "b"}}}
    return account(api, "resize-gang", "PATCH", theirs, misuse, MERGE_PATCH), owner


@case()
def minimum_counts_change(api: Conversation, ns: str) -> None:
    """resize-gang sets minCount in objects of Muster's, and not in those of users."""
    function, _ = _resize(api, ns, "v1beta1")
    body = {"spec": {"schedulingPolicy": gang(1)}}
    field = "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount"
    operations = [{"op": "replace", "path": field, "value": 1}]
    of_group, of_workload = groups(ns, "podgroups"), groups(ns, "workloads")
    function.must("PATCH", f"{of_group}/{OUR_GROUP}", body, STRATEGIC_PATCH)
    function.must("PATCH", f"{of_workload}/{OUR_WORKLOAD}", operations, JSON_PATCH)
    assert refused(function.request("PATCH", f"{of_group}/theirs", body, STRATEGIC_PATCH), "resize-gang")
    answer = function.request("PATCH", f"{of_workload}/theirs", operations, JSON_PATCH)
    assert refused(answer, "resize-gang")


def _labels_and_owners(api: Conversation, ns: str, version: str) -> None:
    function, _ = _resize(api, ns, version)
    adopted = {"labels": {"app.kubernetes.io/managed-by": "muster", "muster.dev/owner-uid": "12345678"}}
    for plural, our_name in (("workloads", OUR_WORKLOAD), ("podgroups", OUR_GROUP)):
        ours, theirs = (groups(ns, plural, name, version=version) for name in (our_name, "theirs"))
        for metadata in (
            {"labels": {"a": "b"}},
            {"ownerReferences": None},
            {"finalizers": ["example.com/a"]},
        ):
            assert refused(merge(function, ours, {"metadata": metadata}), "resize-gang"), metadata
        assert refused(merge(function, theirs, {"metadata": adopted}), "resize-gang")


@case()
def rest_of_a_group_stays(api: Conversation, ns: str) -> None:
    """resize-gang may change no labels and owners, and not take a user's group for Muster's by a label."""
    _labels_and_owners(api, ns, "v1beta1")


@case()
def why_a_gang_was_given_up_is_noted(api: Conversation, ns: str) -> None:
    """resize-gang notes on a group of Muster's why it gave it up, in one annotation, and in Events."""
    function, owner = _resize(api, ns, "v1beta1")
    ours = groups(ns, "podgroups", OUR_GROUP)
    merge(function, ours, {"metadata": {"annotations": {"muster.dev/fallback": "SchedulingTimedOut: a"}}})
    assert "muster.dev/fallback" in api.must("GET", ours)["metadata"]["annotations"]
    for misuse in ({"a": "b"}, {"muster.dev/fallback": "x" * 1025}, {"muster.dev/fallback": None}):
        assert refused(merge(function, ours, {"metadata": {"annotations": misuse}}), "resize-gang"), misuse
    unreadable = unreadable_managed_fields("scheduling.k8s.io/v1beta1")
    assert refused(merge(function, ours, {"metadata": {"managedFields": unreadable}}), "resize-gang")
    try_events(function, ns, owner, "resize-gang")


@case()
def owners_are_only_suspended(api: Conversation, ns: str) -> None:
    """With the component suspend-after-timeout resize-gang suspends a Job, and changes nothing else of it."""
    owner = _owner(api, ns)
    path = jobs(ns, owner["metadata"]["name"])
    stranger = api.must("POST", jobs(ns), job("stranger"))
    waiting = condition("muster.dev/PodGroupsScheduled", "False", message="no room")
    api.must("PATCH", f"{path}/status", {"status": {"conditions": [waiting]}}, MERGE_PATCH)
    grant(api, "suspend-after-timeout")
    misuse = {"spec": {"suspend": True, "parallelism": 7}}
    function = account(api, "resize-gang", "PATCH", path, misuse, MERGE_PATCH)
    assert refused(merge(function, path, {"metadata": {"labels": {"a": "b"}}}), "suspend-after-timeout")
    unreadable = {"managedFields": unreadable_managed_fields("batch/v1")}
    answer = merge(function, path, {"metadata": unreadable, "spec": {"suspend": True}})
    assert refused(answer, "suspend-after-timeout")
    of_stranger = jobs(ns, stranger["metadata"]["name"])
    assert refused(merge(function, of_stranger, {"spec": {"suspend": True}}), "suspend-after-timeout")
    assert merge(function, path, {"spec": {"suspend": True}}).status == 200
    assert refused(merge(function, path, {"spec": {"suspend": False}}), "suspend-after-timeout")


@case(releases=OLDER)
def rest_of_an_older_group_stays(api: Conversation, ns: str) -> None:
    """resize-gang is limited on 1.36 too, where minCount is immutable."""
    _labels_and_owners(api, ns, "v1alpha2")


@case()
def templates_stay(api: Conversation, ns: str) -> None:
    """The API server itself keeps resize-gang from changing a template in other ways."""
    function, _ = _resize(api, ns, "v1beta1")
    operations = [{"op": "replace", "path": "/spec/podGroupTemplates/0/name", "value": "other"}]
    answer = function.request("PATCH", groups(ns, "workloads", OUR_WORKLOAD), operations, JSON_PATCH)
    assert answer.status == 422


@case()
def composites_are_replaced(api: Conversation, ns: str) -> None:
    """resize-gang deletes and creates CompositePodGroups of Muster's, and not those of users."""
    function, owner = _resize(api, ns, "v1beta1")
    path = groups(ns, "compositepodgroups", version="v1alpha3")
    for _ in range(2):
        function.must("POST", path, musters(composite_group("ours"), owner))
        function.must("DELETE", f"{path}/{OUR_GROUP}")
    api.must("POST", path, composite_group("theirs"))
    assert refused(function.request("DELETE", f"{path}/theirs"), "resize-gang")
    assert refused(function.request("POST", path, composite_group("mine")), "resize-gang")
    for misuse in odd_groups(musters(composite_group("odd"), owner)):
        assert refused(function.request("POST", path, misuse), "resize-gang"), misuse
    for misuse in odd_names(musters(composite_group("odd"), owner)):
        assert refused(function.request("POST", path, misuse), "resize-gang"), misuse
    unowned = musters(composite_group("unowned"), owner)
    del unowned["metadata"]["ownerReferences"]
    assert refused(function.request("POST", path, unowned), "resize-gang")
