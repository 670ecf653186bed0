"""What tokens of Muster's functions can do: one case of each rule of eventing/security/accounts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.cluster.api import MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.accounts import account, is_refused, serve
from tests.contract.bodies import (
    Object,
    condition,
    core,
    gated,
    groups,
    job,
    jobs,
    pod_group,
    pod_spec,
    workload,
)
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
GATE, OTHER = "muster.dev/pod-group", "example.com/wait"
LABELS: Object = {"metadata": {"labels": {"a": "b"}}}
OURS = {"app.kubernetes.io/managed-by": "muster", "muster.dev/owner-uid": "1"}
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainingruntimes"


def _refuses(function: Conversation, path: str, *bodies: Object, content_type: str = MERGE_PATCH) -> None:
    for body in bodies:
        assert is_refused(function.request("PATCH", path, body, content_type)), body


def _without_gate(name: str) -> Object:
    return {"spec": {"schedulingGates": [{"$patch": "delete", "name": name}]}}


@case(releases=BOTH)
def pods_lose_the_gate_and_the_label_of_muster_alone(api: Conversation, ns: str) -> None:
    """patch-pods takes Muster's gate and label from a pod, and can change nothing else of it."""
    path, body = core(ns, "pods", "held"), gated("held", OTHER, GATE)
    body["metadata"]["labels"] = {"muster.dev/gated": "true", "team": "a"}
    api.must("POST", core(ns, "pods"), body)
    function = account(api, "patch-pods", path, LABELS)
    image: Object = {"spec": {"containers": [{"name": "main", "image": "evil:1"}]}}
    for patch in (image, _without_gate(OTHER)):
        _refuses(function, path, patch, content_type=STRATEGIC_PATCH)
    metadata = ({"labels": {"team": None}}, {"labels": {"muster.dev/gated": "b"}}, {"finalizers": ["a.b/c"]})
    _refuses(function, path, *({"metadata": one} for one in metadata))
    released = {**_without_gate(GATE), "metadata": {"labels": {"muster.dev/gated": None}}}
    left = function.must("PATCH", path, released, STRATEGIC_PATCH)
    assert (left["spec"]["schedulingGates"], left["metadata"]["labels"]) == ([{"name": OTHER}], {"team": "a"})


@case(releases=BOTH)
def owners_get_the_conditions_of_muster_alone(api: Conversation, ns: str) -> None:
    """emit-conditions writes and takes away Muster's conditions of a Job, and changes nothing else."""
    api.must("POST", jobs(ns), job("owner"))
    path = f"{jobs(ns, 'owner')}/status"
    theirs, ours = _condition("example.com/Theirs"), _condition("muster.dev/PodGroupsReady")
    api.must("PATCH", path, {"status": {"conditions": [theirs]}}, MERGE_PATCH)
    function = account(api, "emit-conditions", path, {"status": {"active": 3}})
    for conditions in ([], [{**theirs, "status": "False"}], [theirs, _condition("example.com/Mine")]):
        _refuses(function, path, {"status": {"conditions": conditions}})
    for conditions in ([theirs, ours], [theirs, {**ours, "status": "False"}], [theirs]):
        function.must("PATCH", path, {"status": {"conditions": conditions}}, MERGE_PATCH)


def _groups(api: Conversation, ns: str, version: str) -> None:
    """Try what is refused and what is allowed of Workloads and PodGroups."""
    for plural, make in (("workloads", workload), ("podgroups", pod_group)):
        path = groups(ns, plural, version=version)
        api.must("POST", path, make("theirs", version=version))
        ours = make("ours", version=version)
        ours["metadata"]["labels"] = OURS
        api.must("POST", path, {**ours, "metadata": {**ours["metadata"], "name": "before"}})
        resizer = account(api, "resize-gang", f"{path}/theirs", LABELS)
        _refuses(resizer, f"{path}/theirs", {"metadata": {"labels": OURS}})
        _refuses(resizer, f"{path}/before", {"metadata": {"labels": {"muster.dev/owner-uid": None}}})
        resizer.must("PATCH", f"{path}/before", {"metadata": {"annotations": {"a": "b"}}}, MERGE_PATCH)
        maker = api.as_user(api.token_of("muster-system", "create-workload"), "muster-create-workload")
        assert is_refused(maker.request("POST", path, make("mine", version=version)))
        assert is_refused(maker.request("DELETE", f"{path}/theirs"))
        maker.must("POST", path, ours)
        maker.must("DELETE", f"{path}/ours")


@case()
def groups_have_the_labels_of_muster(api: Conversation, ns: str) -> None:
    """Workloads and PodGroups have Muster's labels before and after a write of a function."""
    _groups(api, ns, "v1beta1")


@case(releases=("1.36",))
def groups_of_1_36_have_the_labels_of_muster(api: Conversation, ns: str) -> None:
    """Also in the version that 1.36 serves."""
    _groups(api, ns, "v1alpha2")


@case(releases=BOTH)
def runtimes_get_group_labels_and_the_fields_of_kai_alone(api: Conversation, ns: str) -> None:
    """mark-runtime writes its fields on a runtime and takes them away, and can change nothing else of it."""
    serve(api.api, "trainer")
    path = f"{RUNTIMES.format(ns)}/torch"
    stored = api.must("POST", RUNTIMES.format(ns), _a_runtime())
    misuse = {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    function = account(api, "mark-runtime", path, misuse, "PUT")
    misuses: tuple[Callable[[Object], object], ...] = (
        lambda runtime: runtime["spec"].update(mlPolicy={"numNodes": 3}),
        lambda runtime: _entries(runtime).reverse(),
        lambda runtime: _entries(runtime).pop(),
        lambda runtime: _entries(runtime)[0].update(name="other"),
        lambda runtime: _pods(runtime)["metadata"]["labels"].update(team="b"),
        lambda runtime: _pods(runtime)["spec"]["containers"][0].update(image="evil:1"),
        lambda runtime: _pods(runtime)["spec"].update(schedulerName="other"),
        lambda runtime: runtime["spec"]["template"].update(metadata={"labels": {"a": "b"}}),
    )
    for change in misuses:
        changed = copy.deepcopy(stored)
        change(changed)
        assert is_refused(function.request("PUT", path, changed))
    marked = copy.deepcopy(stored)
    _pods(marked)["metadata"]["labels"] |= {"muster.dev/group": "trainer", "kai.scheduler/queue": "a"}
    _pods(marked)["spec"]["schedulerName"] = "kai-scheduler"
    marked["spec"]["template"]["metadata"] = {
        "labels": {"kai.scheduler/queue": "a"},
        "annotations": {"kai.scheduler/batch-min-member": "1"},
    }
    again = function.must("PUT", path, marked)
    function.must("PUT", path, {**again, "spec": stored["spec"]})


@case(releases=BOTH)
def owners_that_wait_are_suspended(api: Conversation, ns: str) -> None:
    """With suspend-after-timeout resize-gang suspends a Job that waits, and changes nothing else."""
    path = jobs(ns, "owner")
    api.must("POST", jobs(ns), job("owner"))
    suspended: Object = {"spec": {"suspend": True}}
    function = account(api, "resize-gang", path, {"spec": {"parallelism": 3}})
    _refuses(function, path, suspended)
    waiting = [_condition("muster.dev/PodGroupsScheduled", "False")]
    api.must("PATCH", f"{path}/status", {"status": {"conditions": waiting}}, MERGE_PATCH)
    _refuses(function, path, {"spec": {"suspend": True, "parallelism": 3}}, {**suspended, **LABELS})
    function.must("PATCH", path, suspended, MERGE_PATCH)


@case(releases=BOTH)
def gangs_that_lost_members_are_evicted_or_fail(api: Conversation, ns: str) -> None:
    """With restart-gang its function evicts a pod of the UID it saw, and lets a Job of a gang fail."""
    path, pod = jobs(ns, "owner"), core(ns, "pods", "member")
    owner = job("owner")
    owner["spec"]["template"]["metadata"] = {"labels": {"muster.dev/group": "main"}}
    api.must("POST", jobs(ns), owner)
    api.must("POST", jobs(ns), job("other"))
    uid = api.must("POST", core(ns, "pods"), {**gated("member", GATE)})["metadata"]["uid"]
    function = account(api, "restart-gang", f"{path}/status", {"status": {"active": 3}})
    target, theirs = _condition("FailureTarget") | {"reason": "MembersLost"}, _condition("example.com/Theirs")
    _refuses(function, f"{jobs(ns, 'other')}/status", {"status": {"conditions": [target]}})
    theirs = api.must("PATCH", f"{path}/status", {"status": {"conditions": [theirs]}}, MERGE_PATCH)["status"]
    added = ([target], [*theirs["conditions"], _condition("FailureTarget")])
    _refuses(function, f"{path}/status", *({"status": {"conditions": one}} for one in added))
    whole = {"status": {"conditions": [*theirs["conditions"], target]}}
    function.must("PATCH", f"{path}/status", whole, MERGE_PATCH)
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "member", "namespace": ns},
    }
    for seen, status in (("another", 409), (uid, 201)):
        options = {"deleteOptions": {"preconditions": {"uid": seen}}}
        assert function.request("POST", f"{pod}/eviction", {**eviction, **options}).status == status


def _condition(kind: str, status: str = "True") -> Object:
    return condition(kind, status, message="why")


def _a_runtime() -> Object:
    pods: Object = {"metadata": {"labels": {"team": "a"}}, "spec": pod_spec(restartPolicy="Never")}
    entries = [{"name": name, "template": {"spec": {"template": pods}}} for name in ("initializer", "node")]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": entries}}},
    }


def _entries(runtime: Object) -> list[Any]:
    entries: list[Any] = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return entries


def _pods(runtime: Object) -> Any:
    return _entries(runtime)[-1]["template"]["spec"]["template"]
