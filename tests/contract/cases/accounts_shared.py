"""What can be done with the token of the account that all functions share in the overlay one-service."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.cluster.api import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.accounts import (
    NAMESPACE,
    OUR_GROUP,
    OUR_WORKLOAD,
    REFUSED_BY,
    apply_again,
    dead_letter,
    event,
    musters,
    odd_dead_letters,
    odd_events,
    serve,
    shared_account,
)
from tests.contract.bodies import (
    Object,
    composite_group,
    condition,
    config_map,
    core,
    gang,
    gated,
    groups,
    job,
    jobs,
    pod_group,
    workload,
)
from tests.contract.case import Cases, Conversation
from tests.contract.cases.accounts_runtimes import RUNTIMES, a_runtime, pods_of, with_image

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
GATE = "muster.dev/pod-group"
LABELS: Object = {"metadata": {"labels": {"a": "b"}}}
OF_OWNERS = ("create-workload", "create-pod-groups", "resize-gang", "emit-conditions")
"""The steps that create Events about owners."""


def _refused(answer: Any) -> bool:
    """Whether one of the policies refused; several may judge the same request, each by the same rules."""
    return answer.status == 403 and f"{REFUSED_BY} 'muster-" in answer.message


def _groups(api: Conversation, ns: str, version: str) -> None:
    owner = api.must("POST", jobs(ns), job("owner"))
    workloads, pod_groups = (groups(ns, plural, version=version) for plural in ("workloads", "podgroups"))
    for path, body in ((workloads, workload), (pod_groups, pod_group)):
        api.must("POST", path, body("theirs", version=version))
    theirs = [f"{workloads}/theirs", f"{pod_groups}/theirs"]
    function = shared_account(
        api,
        ("POST", workloads, workload("theirs-too", version=version)),
        ("POST", pod_groups, pod_group("theirs-too", version=version)),
        *(("PATCH", path, LABELS, MERGE_PATCH) for path in theirs),
        *(("DELETE", path, None, JSON) for path in theirs),
    )
    function.must("POST", workloads, musters(workload("ours", version=version), owner))
    function.must("POST", pod_groups, musters(pod_group("ours", version=version), owner))
    for path in (*theirs, f"{workloads}/{OUR_WORKLOAD}", f"{pod_groups}/{OUR_GROUP}"):
        assert _refused(function.request("PATCH", path, LABELS, MERGE_PATCH)), path
    for path in theirs:
        assert _refused(function.request("DELETE", path)), path
    for path in (f"{workloads}/{OUR_WORKLOAD}", f"{pod_groups}/{OUR_GROUP}"):
        function.must("DELETE", path)


@case()
def groups_by_the_shared_account(api: Conversation, ns: str) -> None:
    """The shared account creates and deletes Muster's groups, and may not change or delete those of users."""
    _groups(api, ns, "v1beta1")


@case(releases=("1.36",))
def older_groups_by_the_shared_account(api: Conversation, ns: str) -> None:
    """The shared account is limited on 1.36 too, where another version is served."""
    _groups(api, ns, "v1alpha2")


@case()
def minimum_counts_by_the_shared_account(api: Conversation, ns: str) -> None:
    """The shared account sets minCount of Muster's groups, and creates composite groups as two steps do."""
    owner = api.must("POST", jobs(ns), job("owner"))
    workloads, pod_groups = groups(ns, "workloads"), groups(ns, "podgroups")
    composites = groups(ns, "compositepodgroups", version="v1alpha3")
    for path, body in ((workloads, workload), (pod_groups, pod_group)):
        api.must("POST", path, musters(body("ours"), owner))
        api.must("POST", path, body("theirs"))
    function = shared_account(
        api,
        ("PATCH", f"{pod_groups}/theirs", LABELS, MERGE_PATCH),
        ("PATCH", f"{workloads}/theirs", LABELS, MERGE_PATCH),
        ("POST", composites, composite_group("theirs")),
    )
    smaller = {"spec": {"schedulingPolicy": gang(1)}}
    field = "/spec/podGroupTemplates/0/schedulingPolicy/gang/minCount"
    operations = [{"op": "replace", "path": field, "value": 1}]
    function.must("PATCH", f"{pod_groups}/{OUR_GROUP}", smaller, STRATEGIC_PATCH)
    function.must("PATCH", f"{workloads}/{OUR_WORKLOAD}", operations, JSON_PATCH)
    assert _refused(function.request("PATCH", f"{pod_groups}/theirs", smaller, STRATEGIC_PATCH))
    assert _refused(function.request("PATCH", f"{workloads}/theirs", operations, JSON_PATCH))
    function.must("POST", composites, musters(composite_group("ours"), owner))
    assert _refused(function.request("POST", composites, composite_group("theirs")))
    function.must("DELETE", f"{composites}/{OUR_GROUP}")


@case(releases=BOTH)
def pods_by_the_shared_account(api: Conversation, ns: str) -> None:
    """The shared account takes Muster's gate away from a pod, and may change nothing else of it."""
    path = core(ns, "pods", "held")
    api.must("POST", core(ns, "pods"), gated("held", GATE, "example.com/wait"))
    function = shared_account(api, ("PATCH", path, LABELS, MERGE_PATCH))
    image = {"spec": {"containers": [{"name": "main", "image": "evil:1"}]}}
    assert _refused(function.request("PATCH", path, image, STRATEGIC_PATCH))
    assert _refused(function.request("PATCH", path, {"spec": {"schedulingGates": None}}, MERGE_PATCH))
    remove = {"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}}
    left = function.must("PATCH", path, remove, STRATEGIC_PATCH)
    assert [gate["name"] for gate in left["spec"]["schedulingGates"]] == ["example.com/wait"]


@case(releases=BOTH)
def conditions_by_the_shared_account(api: Conversation, ns: str) -> None:
    """The shared account writes Muster's conditions of a Job, and no others."""
    api.must("POST", jobs(ns), job())
    path = f"{jobs(ns, 'job')}/status"
    function = shared_account(api, ("PATCH", path, LABELS, MERGE_PATCH))
    ours = condition("muster.dev/PodGroupsReady", "False", message="invalid")
    written = function.must("PATCH", path, {"status": {"conditions": [ours]}}, MERGE_PATCH)
    assert _refused(apply_again(function, path, written, "thief"))
    for misuse in ({"conditions": [ours, condition("FailureTarget")]}, {"active": 3}):
        assert _refused(function.request("PATCH", path, {"status": misuse}, MERGE_PATCH)), misuse
    for conditions in ([ours, ours], [{**ours, "message": "x" * 2049}]):
        filled = {"status": {"conditions": conditions}}
        assert _refused(function.request("PATCH", path, filled, MERGE_PATCH)), conditions


@case(releases=BOTH)
def events_by_the_shared_account(api: Conversation, ns: str) -> None:
    """The shared account creates the Events of every step, each about the kinds that the step reports on."""
    path, about = core(ns, "events"), api.must("POST", jobs(ns), job())
    runtime = {**about, "kind": "TrainingRuntime", "apiVersion": "trainer.kubeflow.org/v1alpha1"}
    function = shared_account(api, ("POST", path, event(ns, about, "kubelet")))
    for step in OF_OWNERS:
        function.must("POST", path, event(ns, about, f"muster-{step}"))
    function.must("POST", path, event(ns, runtime, "muster-mark-runtime"))
    forged = event(ns, about, "muster-create-workload")
    forged["source"] = {"component": "kubelet"}
    misuses = [
        event(ns, about, "kubelet"),
        event(ns, about, ""),
        event(ns, about, "muster-patch-pods"),
        event(ns, about, "muster-mark-runtime"),
        event(ns, runtime, "muster-emit-conditions"),
        event(ns, {**about, "kind": "Secret"}, "muster-create-workload"),
        forged,
        *odd_events(event(ns, about, "muster-create-workload")),
    ]
    for number, misuse in enumerate(misuses):
        misuse["metadata"]["name"] = f"forged.{number}"
        assert _refused(function.request("POST", path, misuse)), misuse


@case(releases=BOTH)
def runtimes_by_the_shared_account(api: Conversation, ns: str) -> None:
    """The shared account writes group labels on a runtime, and no image."""
    serve(api.api, "trainer")
    path = f"{RUNTIMES.format(ns)}/torch"
    stored = api.must("POST", RUNTIMES.format(ns), a_runtime())
    misuse = {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    function = replace(shared_account(api, ("PUT", path, misuse)), manager="muster-mark-runtime")
    marked = api.must("GET", path)
    pods_of(marked, 1)["metadata"]["labels"]["muster.dev/group"] = "trainer"
    stored = function.must("PUT", path, marked)
    with_image(stored)
    assert _refused(function.request("PUT", path, stored))


@case(releases=BOTH)
def config_maps_by_the_shared_account(api: Conversation, ns: str) -> None:
    """The shared account creates and deletes dead letters, and no other ConfigMap, muster-policy included."""
    del ns
    api.api.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    path, name = core(NAMESPACE, "configmaps"), "dead-letter-0123456789ab"
    function = shared_account(api, ("POST", path, config_map("probe")))
    for left in (name, "muster-policy"):
        api.api.request("DELETE", f"{path}/{left}")
    labels = {"app.kubernetes.io/managed-by": "muster", "muster.dev/dead-letter": "true"}
    function.must("POST", path, dead_letter(name))
    for misuse in odd_dead_letters():
        assert _refused(function.request("POST", path, misuse)), misuse
    api.must("POST", path, config_map("muster-policy"))
    assert _refused(function.request("DELETE", f"{path}/muster-policy"))
    assert _refused(function.request("POST", path, config_map("mine", labels=labels)))
    function.must("DELETE", f"{path}/{name}")
    api.must("DELETE", f"{path}/muster-policy")
