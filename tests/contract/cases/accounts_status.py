"""What can be done with the tokens of emit-conditions and mark-runtime, which write to users' objects."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from tests.cluster.api import MERGE_PATCH
from tests.contract.accounts import (
    account,
    applied,
    apply_again,
    long_managed_fields,
    merge,
    refused,
    serve,
    try_events,
)
from tests.contract.bodies import Object, condition, job, jobs, jobsets, pod_spec
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainingruntimes"


def _of_job(namespace: str, name: str = "job") -> str:
    return f"{jobs(namespace, name)}/status"


def _emit_conditions(api: Conversation, ns: str) -> Conversation:
    api.must("POST", jobs(ns), job("probe"))
    misuse = {"metadata": {"labels": {"a": "b"}}}
    return account(api, "emit-conditions", "PATCH", _of_job(ns, "probe"), misuse, MERGE_PATCH)


def _conditions(*all_of_them: Object) -> Object:
    return {"status": {"conditions": list(all_of_them)}}


@case(releases=BOTH)
def conditions_of_musters_types(api: Conversation, ns: str) -> None:
    """emit-conditions writes and rewrites its two conditions in the status of a Job."""
    function = _emit_conditions(api, ns)
    api.must("POST", jobs(ns), job(suspend=True))
    theirs = condition("Suspended", message="by its owner")
    api.must("PATCH", _of_job(ns), _conditions(theirs), MERGE_PATCH)
    for status in ("False", "True"):
        ours = [
            condition(f"muster.dev/PodGroups{what}", status, message="placed")
            for what in ("Ready", "Scheduled")
        ]
        stored = function.must("PATCH", _of_job(ns), _conditions(*ours, theirs), MERGE_PATCH)
        found = {one["type"]: one["status"] for one in stored["status"]["conditions"]}
        assert found["muster.dev/PodGroupsReady"] == status


@case(releases=BOTH)
def conditions_of_others_stay(api: Conversation, ns: str) -> None:
    """emit-conditions may not add, change or remove another condition: FailureTarget fails a Job."""
    function = _emit_conditions(api, ns)
    api.must("POST", jobs(ns), job(suspend=True))
    theirs = condition("Suspended", message="by its owner")
    api.must("PATCH", _of_job(ns), _conditions(theirs), MERGE_PATCH)
    misuses = [
        _conditions(theirs, condition("FailureTarget")),
        _conditions(theirs, condition("muster.dev/PodGroupsReady"), condition("FailureTarget")),
        _conditions(theirs, condition("muster.dev/Other")),
        _conditions({**theirs, "status": "False"}),
        _conditions(),
    ]
    for misuse in misuses:
        assert refused(merge(function, _of_job(ns), misuse), "emit-conditions"), misuse
    assert len(api.must("GET", jobs(ns, "job"))["status"]["conditions"]) == 1


@case(releases=BOTH)
def conditions_are_few_and_short(api: Conversation, ns: str) -> None:
    """emit-conditions may not fill a status, which its controller could then not write any more."""
    function = _emit_conditions(api, ns)
    api.must("POST", jobs(ns), job(suspend=True))
    ours = condition("muster.dev/PodGroupsReady", message="x" * 2048)
    function.must("PATCH", _of_job(ns), _conditions(ours), MERGE_PATCH)
    misuses = [
        _conditions(ours, ours),
        _conditions({**ours, "message": "x" * 2049}),
        _conditions({**ours, "reason": "x" * 129}),
        _conditions({**ours, "status": "x" * 1000}),
    ]
    for misuse in misuses:
        assert refused(merge(function, _of_job(ns), misuse), "emit-conditions"), misuse


@case(releases=BOTH)
def managed_fields_of_a_status_are_not_written(api: Conversation, ns: str) -> None:
    """The API server ignores managedFields in a request about a status; thousands would fill an object."""
    function = _emit_conditions(api, ns)
    stored = api.must("POST", jobs(ns), job(suspend=True))["metadata"]["managedFields"]
    ours = _conditions(condition("muster.dev/PodGroupsReady", message="placed"))
    entries = [*stored, applied("batch/v1", "invented")]
    written = function.must(
        "PATCH", _of_job(ns), {**ours, "metadata": {"managedFields": entries}}, MERGE_PATCH
    )
    assert len(written["metadata"]["managedFields"]) == len(stored) + 1


@case(releases=BOTH)
def applies_add_no_managers_to_a_status(api: Conversation, ns: str) -> None:
    """emit-conditions may not add entries to managedFields by server-side apply: any number are kept."""
    function = _emit_conditions(api, ns)
    api.must("POST", jobs(ns), job(suspend=True))
    written = merge(
        function, _of_job(ns), _conditions(condition("muster.dev/PodGroupsReady", message="placed"))
    ).body
    for manager in ("thief", "muster-emit-conditions"):
        assert refused(apply_again(function, _of_job(ns), written, manager), "emit-conditions"), manager


@case(releases=BOTH)
def conditions_where_managed_fields_are_long(api: Conversation, ns: str) -> None:
    """emit-conditions writes conditions of a Job whose managedFields a user made long, under any name."""
    function = _emit_conditions(api, ns)
    stored = api.must("POST", jobs(ns), job(suspend=True))["metadata"]["managedFields"]
    for manager in ("theirs", "muster-emit-conditions"):
        theirs = [entry | {"manager": manager} for entry in long_managed_fields("batch/v1")]
        api.must("PATCH", jobs(ns, "job"), {"metadata": {"managedFields": [*stored, *theirs]}}, MERGE_PATCH)
        ours = condition("muster.dev/PodGroupsReady", message=manager)
        function.must("PATCH", _of_job(ns), _conditions(ours), MERGE_PATCH)


@case(releases=BOTH)
def rest_of_a_status_stays(api: Conversation, ns: str) -> None:
    """emit-conditions may change nothing else through a status: no counts, no labels, no owners."""
    function = _emit_conditions(api, ns)
    api.must("POST", jobs(ns), job())
    misuses: list[Any] = [
        {"status": {"active": 3}},
        {"metadata": {"labels": {"a": "b"}}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"metadata": {"finalizers": ["example.com/never"]}},
    ]
    for misuse in misuses:
        assert refused(merge(function, _of_job(ns), misuse), "emit-conditions"), misuse


@case(releases=BOTH)
def conditions_of_a_jobset(api: Conversation, ns: str) -> None:
    """emit-conditions writes its conditions in the status of a JobSet, and may not call it completed."""
    serve(api.api, "jobset")
    function, path = _emit_conditions(api, ns), jobsets(ns, "train")
    template = {"spec": {"template": {"spec": pod_spec(restartPolicy="Never")}}}
    entry = {"name": "workers", "replicas": 1, "template": template}
    api.must("POST", jobsets(ns), _jobset("train", entry))
    ready = condition("PodGroupsReady")
    function.must("PATCH", f"{path}/status", _conditions(ready), MERGE_PATCH)
    for misuse in (_conditions(ready, condition("Completed")), {"status": {"restarts": 7}}):
        assert refused(merge(function, f"{path}/status", misuse), "emit-conditions"), misuse


def _jobset(name: str, *entries: Object) -> Object:
    of_kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return {**of_kind, "metadata": {"name": name}, "spec": {"replicatedJobs": list(entries)}}


@case(releases=BOTH)
def events_are_the_components_own(api: Conversation, ns: str) -> None:
    """emit-conditions may create Events about owners, under its own name only."""
    function = _emit_conditions(api, ns)
    try_events(function, ns, api.must("POST", jobs(ns), job()), "emit-conditions")


def a_runtime(policy: str = "kaiScheduler: {queue: a}", **more: Any) -> Object:
    """A TrainingRuntime of two replicatedJobs, with a policy."""
    pods: Object = {"metadata": {"labels": {"team": "a"}}, "spec": pod_spec(restartPolicy="Never")}
    entries = [
        {"name": name, "template": {"spec": {"template": pods}}} for name in ("dataset-initializer", "node")
    ]
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {
            "name": "torch",
            "annotations": {"muster.dev/pod-group-policy": policy} if policy else {},
        },
        "spec": {"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": entries}}},
        **more,
    }


def _mark_runtime(
    api: Conversation, ns: str, runtime: Object | None = None
) -> tuple[Conversation, str, Object]:
    """The token of mark-runtime, with the path of a runtime and its stored object."""
    serve(api.api, "trainer")
    path = f"{RUNTIMES.format(ns)}/torch"
    stored = api.must("POST", RUNTIMES.format(ns), runtime or a_runtime())
    misuse = {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}}
    return account(api, "mark-runtime", "PUT", path, misuse), path, stored


def pods_of(runtime: Object, number: int = 0) -> Any:
    """The pod template of a replicatedJob."""
    entry = runtime["spec"]["template"]["spec"]["replicatedJobs"][number]
    return entry["template"]["spec"]["template"]


@case(releases=BOTH)
def runtimes_are_marked(api: Conversation, ns: str) -> None:
    """mark-runtime writes group labels and the fields of KAI on a runtime, and takes them away again."""
    function, path, _ = _mark_runtime(api, ns)
    marked = api.must("GET", path)
    group = {"muster.dev/group": "trainer", "muster.dev/group-size": "2", "kai.scheduler/queue": "a"}
    pods_of(marked, 1)["metadata"]["labels"].update(group)
    pods_of(marked, 1)["spec"]["schedulerName"] = "kai-scheduler"
    marked["spec"]["template"]["metadata"] = {
        "labels": {"kai.scheduler/queue": "a"},
        "annotations": {"kai.scheduler/batch-min-member": "1"},
    }
    unmarked = function.must("PUT", path, marked)
    for label in group:
        del pods_of(unmarked, 1)["metadata"]["labels"][label]
    del pods_of(unmarked, 1)["spec"]["schedulerName"]
    del unmarked["spec"]["template"]["metadata"]
    assert pods_of(function.must("PUT", path, unmarked), 1)["metadata"]["labels"] == {"team": "a"}


@case(releases=BOTH)
def runtimes_without_a_policy_get_nothing(api: Conversation, ns: str) -> None:
    """mark-runtime only opts out pods of another scheduler there, and takes away what it wrote."""
    function, path, stored = _mark_runtime(api, ns, a_runtime(policy=""))
    pods_of(stored)["metadata"]["labels"]["muster.dev/group"] = "trainer"
    pods_of(stored)["spec"]["schedulerName"] = "volcano"
    other = copy.deepcopy(stored["spec"]["template"]["spec"]["replicatedJobs"][1])
    other["name"] = "other"
    other["template"]["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    stored["spec"]["template"]["spec"]["replicatedJobs"].append(other)
    stored = api.must("PUT", path, stored)
    _try_each(api, function, path, _with_group, _opted_out, _opted_out_of_the_default_scheduler, *WITH_KAI)
    pods_of(stored)["metadata"]["labels"]["muster.dev/group"] = "none"
    function.must("PUT", path, stored)
    stored = api.must("GET", path)
    del pods_of(stored)["metadata"]["labels"]["muster.dev/group"]
    function.must("PUT", path, stored)


@case(releases=BOTH)
def only_a_policy_of_kai_brings_its_fields(api: Conversation, ns: str) -> None:
    """Pods of a policy with groups would wait for ever for a scheduler that may not be there."""
    function, path, stored = _mark_runtime(api, ns, a_runtime(policy="workload: {}"))
    _try_each(api, function, path, *WITH_KAI)
    _with_group(stored)
    function.must("PUT", path, stored)


def _with_group(runtime: Object) -> None:
    pods_of(runtime, 1)["metadata"]["labels"]["muster.dev/group-size"] = "1"


def _opted_out(runtime: Object) -> None:
    pods_of(runtime, 1)["metadata"]["labels"]["muster.dev/group"] = "none"


def _opted_out_of_the_default_scheduler(runtime: Object) -> None:
    pods_of(runtime, 2)["metadata"]["labels"]["muster.dev/group"] = "none"


def _with_queue(runtime: Object) -> None:
    pods_of(runtime, 1)["metadata"]["labels"]["kai.scheduler/queue"] = "a"


def _with_kai(runtime: Object) -> None:
    pods_of(runtime, 1)["spec"]["schedulerName"] = "kai-scheduler"


def _with_queue_of_the_jobset(runtime: Object) -> None:
    runtime["spec"]["template"]["metadata"] = {"labels": {"kai.scheduler/queue": "a"}}


WITH_KAI = (_with_queue, _with_kai, _with_queue_of_the_jobset)


def _try_each(
    api: Conversation, function: Conversation, path: str, *misuses: Callable[[Object], None]
) -> None:
    """Check that each change of the runtime is refused, by itself."""
    for misuse in misuses:
        runtime = api.must("GET", path)
        misuse(runtime)
        assert refused(function.request("PUT", path, runtime), "mark-runtime"), misuse.__name__


@case(releases=BOTH)
def odd_runtimes_are_marked(api: Conversation, ns: str) -> None:
    """mark-runtime marks a runtime with a replicatedJob of no template, and one with a label that is none."""
    function, path, stored = _mark_runtime(api, ns)
    pods_of(stored)["metadata"]["labels"]["muster.dev/group"] = "not a label!"
    stored["spec"]["template"]["spec"]["replicatedJobs"].append({"name": "empty", "template": {}})
    marked = api.must("PUT", path, stored)
    pods_of(marked, 1)["metadata"]["labels"]["muster.dev/group"] = "trainer"
    function.must("PUT", path, marked)


@case(releases=BOTH)
def rest_of_a_runtime_stays(api: Conversation, ns: str) -> None:
    """mark-runtime may change neither an image nor anything else of a runtime that is not a group label."""
    function, path, _ = _mark_runtime(api, ns)
    _try_each(
        api,
        function,
        path,
        with_image,
        _with_another_label,
        _with_a_long_group,
        _with_a_group_of_two_lines,
        _with_a_queue_that_is_no_label,
        _with_a_long_queue,
        _with_another_scheduler,
        _with_another_job,
        _with_jobs_in_another_order,
        _with_replicas,
        _with_policy,
        _with_owner,
        _with_annotation_of_the_jobset,
    )


def with_image(runtime: Object) -> None:
    """Give the first replicatedJob a group and another image."""
    pods_of(runtime)["metadata"]["labels"]["muster.dev/group"] = "trainer"
    pods_of(runtime)["spec"]["containers"][0]["image"] = "evil:1"


def _with_another_label(runtime: Object) -> None:
    pods_of(runtime)["metadata"]["labels"]["team"] = "b"


def _with_a_long_group(runtime: Object) -> None:
    pods_of(runtime)["metadata"]["labels"]["muster.dev/group"] = "x" * 64


def _with_a_group_of_two_lines(runtime: Object) -> None:
    pods_of(runtime)["metadata"]["labels"]["muster.dev/group"] = "trainer\n"


def _with_a_queue_that_is_no_label(runtime: Object) -> None:
    runtime["spec"]["template"]["metadata"] = {"labels": {"kai.scheduler/queue": "a queue"}}


def _with_a_long_queue(runtime: Object) -> None:
    runtime["spec"]["template"]["metadata"] = {"labels": {"kai.scheduler/queue": "x" * 64}}


def _with_another_scheduler(runtime: Object) -> None:
    pods_of(runtime)["spec"]["schedulerName"] = "mine"


def _with_another_job(runtime: Object) -> None:
    jobs_of_it = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    jobs_of_it.append({**jobs_of_it[0], "name": "mine"})


def _with_jobs_in_another_order(runtime: Object) -> None:
    runtime["spec"]["template"]["spec"]["replicatedJobs"].reverse()


def _with_replicas(runtime: Object) -> None:
    runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 9


def _with_policy(runtime: Object) -> None:
    runtime["spec"]["mlPolicy"]["numNodes"] = 9


def _with_owner(runtime: Object) -> None:
    reference = {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": "12345678"}
    runtime["metadata"]["ownerReferences"] = [reference]


def _with_annotation_of_the_jobset(runtime: Object) -> None:
    runtime["spec"]["template"]["metadata"] = {"annotations": {"a": "b"}}


@case(releases=BOTH)
def events_about_runtimes(api: Conversation, ns: str) -> None:
    """mark-runtime may create Events about runtimes, under its own name only."""
    function, _, stored = _mark_runtime(api, ns)
    try_events(function, ns, stored, "mark-runtime")
