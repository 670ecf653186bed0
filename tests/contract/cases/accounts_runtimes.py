"""What can be done with the token of mark-runtime, which writes to the pod templates of runtimes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.cluster.api import APPLY
from tests.contract.accounts import account, refused, serve, try_events
from tests.contract.bodies import Object, pod_spec
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{}/trainingruntimes"


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
def runtimes_that_the_trainer_groups_are_opted_out(api: Conversation, ns: str) -> None:
    """mark-runtime only opts out the pods where coscheduling of the Trainer's is the only policy."""
    runtime = a_runtime(policy="")
    runtime["spec"]["podGroupPolicy"] = {"coscheduling": {"scheduleTimeoutSeconds": 60}}
    function, path, stored = _mark_runtime(api, ns, runtime)
    _try_each(api, function, path, _with_group, *WITH_KAI)
    pods_of(stored)["metadata"]["labels"]["muster.dev/group"] = "none"
    function.must("PUT", path, stored)
    without = api.must("GET", path)
    without["spec"]["podGroupPolicy"] = {}
    del pods_of(without)["metadata"]["labels"]["muster.dev/group"]
    api.must("PUT", path, without)
    _try_each(api, function, path, _with_group, _opted_out)


@case(releases=BOTH)
def what_was_written_by_hand_stays(api: Conversation, ns: str) -> None:
    """mark-runtime may change, remove or claim no field of an administrator's, nor add to such a group."""
    function, path, stored = _mark_runtime(api, ns)
    pods_of(stored)["metadata"]["labels"] |= {"muster.dev/group": "mine", "kai.scheduler/queue": "mine"}
    pods_of(stored)["spec"]["schedulerName"] = "kai-scheduler"
    stored["spec"]["template"]["metadata"] = {
        "labels": {"kai.scheduler/queue": "mine"},
        "annotations": {"kai.scheduler/batch-min-member": "2"},
    }
    stored = api.must("PUT", path, stored)
    _try_each(
        api,
        function,
        path,
        _without_group,
        _with_another_group,
        _with_a_size,
        _without_queue,
        _without_scheduler,
        _without_queue_of_the_jobset,
        _with_another_minimum,
        _with_a_claim,
        _with_more_entries,
    )
    pods_of(stored, 1)["metadata"]["labels"] |= {"muster.dev/group": "trainer", "kai.scheduler/queue": "a"}
    assert refused(replace(function, manager="kubectl").request("PUT", path, stored), "mark-runtime")
    stored = function.must("PUT", path, stored)
    assert pods_of(stored)["metadata"]["labels"]["muster.dev/group"] == "mine"
    _try_each(api, function, path, _disowned, _disowned_alone)
    shared = api.must("GET", path)
    applied = {
        "apiVersion": shared["apiVersion"],
        "kind": shared["kind"],
        "metadata": {"name": "torch"},
        "spec": {key: shared["spec"][key] for key in ("mlPolicy", "template")},
    }
    api.request("PATCH", path, applied, APPLY, {"fieldManager": "argocd", "force": "true"})
    stored = api.must("GET", path)
    pods_of(stored, 1)["metadata"]["labels"] = {"team": "a"}
    function.must("PUT", path, stored)


def _disowned(runtime: Object) -> None:
    """Change the group, and say in managedFields that nobody owns it: no sweep would change it back."""
    pods_of(runtime, 1)["metadata"]["labels"]["muster.dev/group"] = "none"
    runtime["metadata"]["managedFields"] = [{}]


def _disowned_alone(runtime: Object) -> None:
    """Say that somebody else wrote the group."""
    for entry in runtime["metadata"]["managedFields"]:
        if entry["manager"] == "muster-mark-runtime":
            entry["manager"] = "kubectl"


def _with_more_entries(runtime: Object) -> None:
    """Add entries of the step, before which the one with its fields would not be read."""
    entry = runtime["metadata"]["managedFields"][0]
    for number in range(8):
        more = {"manager": "muster-mark-runtime", "subresource": f"a{number}", "time": "2020-01-01T00:00:00Z"}
        runtime["metadata"]["managedFields"].append({**entry, **more, "fieldsV1": {"f:status": {}}})


def _without_group(runtime: Object) -> None:
    del pods_of(runtime)["metadata"]["labels"]["muster.dev/group"]


def _with_another_group(runtime: Object) -> None:
    pods_of(runtime)["metadata"]["labels"]["muster.dev/group"] = "trainer"


def _with_a_size(runtime: Object) -> None:
    pods_of(runtime)["metadata"]["labels"]["muster.dev/group-size"] = "2"


def _without_queue(runtime: Object) -> None:
    del pods_of(runtime)["metadata"]["labels"]["kai.scheduler/queue"]


def _without_scheduler(runtime: Object) -> None:
    del pods_of(runtime)["spec"]["schedulerName"]


def _without_queue_of_the_jobset(runtime: Object) -> None:
    del runtime["spec"]["template"]["metadata"]["labels"]


def _with_another_minimum(runtime: Object) -> None:
    runtime["spec"]["template"]["metadata"]["annotations"]["kai.scheduler/batch-min-member"] = "1"


def _with_a_claim(runtime: Object) -> None:
    """Say in managedFields that mark-runtime wrote the group, so that the next write may remove it."""
    labels: Object = {"f:labels": {"f:muster.dev/group": {}}}
    of_pods = {"f:template": {"f:spec": {"f:template": {"f:metadata": labels}}}}
    jobs_of_it = {"f:replicatedJobs": {'k:{"name":"dataset-initializer"}': of_pods}}
    claim = copy.deepcopy(runtime["metadata"]["managedFields"][0])
    claim |= {
        "manager": "muster-mark-runtime",
        "fieldsV1": {"f:spec": {"f:template": {"f:spec": jobs_of_it}}},
    }
    runtime["metadata"]["managedFields"].append(claim)


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
