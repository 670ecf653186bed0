"""What can be done with the token of emit-conditions, which writes to the status of users' objects."""

from __future__ import annotations

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


@case(releases=BOTH)
def times_that_no_controller_can_read(api: Conversation, ns: str) -> None:
    """With such a time in one JobSet its controller lists none; neither account may write one."""
    serve(api.api, "jobset")
    status = f"{jobsets(ns, 'train')}/status"
    template = {"spec": {"template": {"spec": pod_spec(restartPolicy="Never")}}}
    api.must("POST", jobsets(ns), _jobset("train", {"name": "workers", "replicas": 1, "template": template}))
    ready = condition("PodGroupsReady")
    kept = {**ready, "lastTransitionTime": "2026-01-01T00:00:00.123456Z"}
    foreign = _conditions(condition("FailureTarget"))
    for name in ("emit-conditions", "create-workload"):
        function = account(api, name, "PATCH", status, foreign, MERGE_PATCH)
        odd = (
            "2026-01-01T00:00:00ZTx",
            "2026-01-01t00:00:00z",
            "2026-01-01T00:00:00.5Z",
            "0001-01-01T00:00:00Z",
        )
        for time in odd:
            misuse = _conditions({**ready, "lastTransitionTime": time})
            assert refused(merge(function, status, misuse), name), time
        function.must("PATCH", status, _conditions(ready), MERGE_PATCH)
        api.must("PATCH", status, _conditions(kept), MERGE_PATCH)
        function.must("PATCH", status, _conditions({**kept, "message": "newer"}), MERGE_PATCH)


def _jobset(name: str, *entries: Object) -> Object:
    of_kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return {**of_kind, "metadata": {"name": name}, "spec": {"replicatedJobs": list(entries)}}


@case(releases=BOTH)
def events_are_the_components_own(api: Conversation, ns: str) -> None:
    """emit-conditions may create Events about owners, under its own name only."""
    function = _emit_conditions(api, ns)
    try_events(function, ns, api.must("POST", jobs(ns), job()), "emit-conditions")
