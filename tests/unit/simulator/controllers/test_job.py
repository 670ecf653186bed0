"""The simulated Job controller does what the one of Kubernetes 1.37.1 does."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster.interface import Object, PatchType
from muster.simulator.controllers.framework.writes import Create, Delete, Patch, Result
from muster.simulator.controllers.job.controller import JobController, JobOptions, sync
from muster.simulator.controllers.job.failures import Backoff
from muster.simulator.controllers.job.pods import new_pod
from tests.unit.simulator.controllers.support import (
    NOW,
    a_job,
    a_pod_of,
    an_object,
    changed,
    merge,
    recorded,
    recorded_object,
    view,
)


def _look(job: Object, *pods: Object, now: float = NOW, backoff: Backoff | None = None) -> Result:
    return sync(job, list(pods), now, backoff or Backoff(0.0))


def _status(job: Object, result: Result) -> Object:
    status: Object = job.get("status") or {}
    for write in result.writes:
        if isinstance(write, Patch) and write.subresource == "status":
            status = merge(status, write.body["status"])
    return status


def _created(result: Result) -> list[str]:
    """The completion indexes of the pods a result creates."""
    return [
        write.body["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
        for write in result.writes
        if isinstance(write, Create)
    ]


def _deleted(result: Result) -> list[str]:
    return [write.name for write in result.writes if isinstance(write, Delete)]


def _released(result: Result) -> list[str]:
    """Names of the pods that lose their finalizer."""
    return [write.name for write in result.writes if isinstance(write, Patch) and not write.subresource]


def _conditions(status: Object) -> dict[str, tuple[str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in status.get("conditions") or []
    }


def test_pod_equals_the_recorded_one() -> None:
    """Name, labels, annotations, owner, finalizer, hostname and variables of a pod are the recorded ones."""
    job, expected = recorded_object("torch", "Job"), recorded_object("torch", "Pod")
    pod = new_pod(job, 0, {}, priority=0)
    for field in ("generateName", "labels", "annotations", "finalizers", "ownerReferences", "namespace"):
        assert pod["metadata"][field] == expected["metadata"][field]
    for field in ("hostname", "subdomain", "restartPolicy"):
        assert pod["spec"][field] == expected["spec"][field]
    assert pod["spec"]["containers"][0]["env"] == expected["spec"]["containers"][0]["env"]


def test_new_job_gets_one_pod_per_index_and_then_a_status() -> None:
    """The first look makes the pods; the next one writes start time and counts, as was recorded."""
    job = a_job()
    first = _look(job)
    assert _created(first) == ["0", "1", "2"]
    assert _status(job, first) == {}
    pods = [a_pod_of(job, index, "Pending") for index in range(3)]
    status = _status(job, _look(job, *pods))
    (expected,) = [
        status for status in _recorded_statuses() if status.get("active") == 3 and status["ready"] == 0
    ]
    assert status | {"startTime": ""} == expected | {"startTime": ""}


def _recorded_statuses() -> list[Object]:
    return next(list(entry["statuses"]) for entry in recorded("torch-statuses") if entry["kind"] == "Job")


def test_statuses_run_through_the_recorded_ones_until_complete() -> None:
    """Pending, ready, succeeded: the Job's statuses are those recorded, one after the other."""
    job = a_job()
    seen: list[Object] = []
    for phase in ("Pending", "Running", "Succeeded"):
        pods = [a_pod_of(job, index, phase) for index in range(3)]
        result = _look(job, *pods)
        job = {**job, "status": _status(job, result)}
        seen.append(job["status"])
    assert len(_released(result)) == 3
    counted = [merge(pod, {"metadata": {"finalizers": None}}) for pod in pods]
    seen.append(_status(job, _look(job, *counted)))
    assert [_timeless(status) for status in seen] == [_timeless(one) for one in _recorded_statuses() if one]


def _timeless(status: Object) -> Object:
    moments = ("startTime", "completionTime")
    same = {name: "" if name in moments else value for name, value in status.items()}
    times = {"lastTransitionTime": "", "lastProbeTime": ""}
    if "conditions" in same:
        same["conditions"] = [condition | times for condition in status["conditions"]]
    return same


@pytest.mark.parametrize(
    ("moment", "makes", "leaves"),
    [
        pytest.param("scaled from 4 to 6", ["4", "5"], [], id="scaled up, the new indexes get pods"),
        pytest.param("scaled from 6 to 2", [], ["2", "3", "4", "5"], id="scaled down, the indexes beyond go"),
    ],
)
def test_scaling_matches_the_recording(moment: str, makes: list[str], leaves: list[str]) -> None:
    """A plain Job scaled with completions: which pods come and which go."""
    story = next(entry for entry in recorded("job-scaled") if entry["moment"] == moment)
    result = _look(story["job"], *story["pods"])
    assert _created(result) == makes
    assert sorted(name.split("-")[1] for name in _deleted(result)) == leaves
    assert sorted(_released(result)) == sorted(_deleted(result))


def test_fewer_parallel_pods_go_from_the_least_advanced_on() -> None:
    """Where only parallelism falls, unbound pods go before bound ones and pending before running."""
    job = a_job(parallelism=1)
    running, pending = a_pod_of(job, 0), a_pod_of(job, 1, "Pending")
    unbound = merge(a_pod_of(job, 2, "Pending"), {"spec": {"nodeName": None}})
    result = _look(job, running, pending, unbound)
    assert _deleted(result) == [unbound["metadata"]["name"], pending["metadata"]["name"]]


def test_suspended_job_deletes_its_pods_uncounted_and_forgets_its_start() -> None:
    """Suspending frees and deletes the pods; then the condition is set and the start time is gone."""
    job = changed(a_job(suspend=True), startTime="2027-01-15T08:00:00Z", active=1, ready=1)
    pod = a_pod_of(job, 0)
    assert _deleted(_look(job, pod)) == _released(_look(job, pod)) == [pod["metadata"]["name"]]
    leaving = merge(pod, {"metadata": {"deletionTimestamp": "2027-01-15T08:00:09Z", "finalizers": None}})
    status = _status(job, _look(job, leaving))
    assert _conditions(status) == {"Suspended": ("True", "JobSuspended")}
    assert (status["terminating"], status.get("active"), status.get("startTime")) == (1, None, None)
    assert "failed" not in status


def test_resumed_job_starts_again() -> None:
    """Resuming makes all pods again and then says JobResumed with a new start time."""
    conditions = [{"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": ""}]
    job = changed(a_job(), conditions=conditions, ready=0, terminating=0)
    assert _created(_look(job)) == ["0", "1", "2"]
    pods = [a_pod_of(job, index, "Pending") for index in range(3)]
    status = _status(job, _look(job, *pods))
    assert _conditions(status) == {"Suspended": ("False", "JobResumed")}
    assert status["startTime"] == "2027-01-15T08:00:00Z"


def test_failed_pod_is_counted_once_and_replaced() -> None:
    """A failed pod goes into the status by uid, loses its finalizer, counts as failed, and is replaced."""
    job = changed(a_job(), startTime="2027-01-15T08:00:00Z", active=3, ready=3, terminating=0)
    failed, others = a_pod_of(job, 1, "Failed"), [a_pod_of(job, 0), a_pod_of(job, 2)]
    first = _look(job, failed, *others)
    status = _status(job, first)
    assert _created(first) == ["1"]
    assert status["uncountedTerminatedPods"] == {"failed": [failed["metadata"]["uid"]]}
    assert _released(first) == [failed["metadata"]["name"]]
    job = {**job, "status": status}
    freed = merge(failed, {"metadata": {"finalizers": None}})
    status = _status(job, _look(job, freed, a_pod_of(job, 1), *others))
    assert (status["failed"], status["uncountedTerminatedPods"]) == (1, {})


def test_replacement_waits_for_the_backoff_of_the_failure() -> None:
    """A replacement comes when the backoff is over, which doubles with each failure."""
    job = changed(a_job(), startTime="2027-01-15T08:00:00Z")
    backoff = Backoff(first=1.0)
    failed, others = a_pod_of(job, 1, "Failed"), [a_pod_of(job, 0), a_pod_of(job, 2)]
    backoff.observe(job["metadata"]["uid"], [failed["metadata"]["uid"]], [], NOW)
    assert _created(_look(job, failed, *others, now=NOW + 0.4, backoff=backoff)) == []
    assert _created(_look(job, failed, *others, now=NOW + 1.0, backoff=backoff)) == ["1"]
    backoff.observe(job["metadata"]["uid"], ["another"], [], NOW + 1)
    assert backoff.remaining(job["metadata"]["uid"], NOW + 1) == 2.0
    backoff.observe(job["metadata"]["uid"], [], ["done"], NOW + 2)
    assert backoff.remaining(job["metadata"]["uid"], NOW + 2) == 0.0


def test_too_many_failures_end_the_job_after_its_pods_are_gone() -> None:
    """Beyond backoffLimit the pods go, FailureTarget is set, and Failed follows when none is left."""
    job = changed(a_job(backoffLimit=1), startTime="2027-01-15T08:00:00Z", failed=1)
    failed, running = a_pod_of(job, 0, "Failed"), a_pod_of(job, 1)
    first = _look(job, failed, running)
    status = _status(job, first)
    assert _deleted(first) == [running["metadata"]["name"]]
    assert _conditions(status) == {"FailureTarget": ("True", "BackoffLimitExceeded")}
    job = {**job, "status": status}
    leaving = merge(running, {"metadata": {"deletionTimestamp": "x", "finalizers": None}})
    freed = merge(failed, {"metadata": {"finalizers": None}})
    assert "Failed" not in _conditions(_status(job, _look(job, freed, leaving)))
    status = _status(job, _look(job, freed))
    assert _conditions(status)["Failed"] == ("True", "BackoffLimitExceeded")
    assert status["failed"] == 3


def test_terminating_pod_is_replaced_at_once_or_only_once_failed() -> None:
    """The podReplacementPolicy decides whether a pod on its way out is waited for."""
    leaving: dict[str, Any] = {"deletionTimestamp": "2027-01-15T08:00:09Z"}
    eager = changed(a_job(), startTime="2027-01-15T08:00:00Z")
    patient = changed(a_job(podReplacementPolicy="Failed"), startTime="2027-01-15T08:00:00Z")
    for job, expected in ((eager, ["1"]), (patient, [])):
        pods = [a_pod_of(job, 0), a_pod_of(job, 1, **leaving), a_pod_of(job, 2)]
        result = _look(job, *pods)
        assert _created(result) == expected
        noted = _status(job, result)["uncountedTerminatedPods"].get("failed", [])
        assert bool(noted) is bool(expected)
    over = [a_pod_of(patient, 0), a_pod_of(patient, 1, "Failed", **leaving), a_pod_of(patient, 2)]
    assert _created(_look(patient, *over)) == ["1"]


def test_index_with_a_limit_of_its_own_fails_for_good() -> None:
    """backoffLimitPerIndex: an index is replaced with its failures counted until it is a failed index."""
    job = changed(a_job(backoffLimitPerIndex=1, backoffLimit=99), startTime="2027-01-15T08:00:00Z")
    others = [a_pod_of(job, 1), a_pod_of(job, 2)]
    first = _look(job, a_pod_of(job, 0, "Failed"), *others)
    (create,) = [write for write in first.writes if isinstance(write, Create)]
    annotations = create.body["metadata"]["annotations"]
    assert annotations["batch.kubernetes.io/job-index-failure-count"] == "1"
    assert _released(first) == []
    again = a_pod_of(job, 0, "Failed")
    again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = "1"
    result = _look(job, again, *others)
    assert _created(result) == []
    assert _status(job, result)["failedIndexes"] == "0"
    assert _released(result) == [again["metadata"]["name"]]


def test_job_with_failed_and_succeeded_indexes_alone_fails_in_the_end() -> None:
    """When every index is over and one has failed, the Job fails with FailedIndexes."""
    job = changed(
        a_job(backoffLimitPerIndex=0, backoffLimit=99),
        startTime="2027-01-15T08:00:00Z",
        completedIndexes="1,2",
        succeeded=2,
        failedIndexes="0",
    )
    assert _conditions(_status(job, _look(job))) == {"FailureTarget": ("True", "FailedIndexes")}


@pytest.mark.parametrize(
    ("action", "counts", "ends"),
    [
        pytest.param("Ignore", False, False, id="Ignore does not count the failure"),
        pytest.param("Count", True, False, id="Count does"),
        pytest.param("FailJob", True, True, id="FailJob ends the Job"),
    ],
)
def test_pod_failure_policy_decides(action: str, counts: bool, ends: bool) -> None:
    """The first rule that matches the exit code says what a failure means."""
    rules = [{"action": action, "onExitCodes": {"operator": "In", "values": [42]}}]
    job = changed(a_job(podFailurePolicy={"rules": rules}), startTime="2027-01-15T08:00:00Z")
    failed = a_pod_of(job, 0, "Failed")
    failed["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": {"exitCode": 42}}}]
    status = _status(job, _look(job, failed, a_pod_of(job, 1), a_pod_of(job, 2)))
    noted = failed["metadata"]["uid"] in status["uncountedTerminatedPods"].get("failed", [])
    assert noted is counts
    assert ("FailureTarget" in _conditions(status)) is ends


def test_deadline_ends_the_job_and_is_waited_for() -> None:
    """The activeDeadlineSeconds count from the start time; a look before the end comes again at the end."""
    job = changed(a_job(activeDeadlineSeconds=10), startTime="2027-01-15T08:00:00Z", ready=3, terminating=0)
    job["status"] |= {"active": 3, "uncountedTerminatedPods": {}}
    pods = [a_pod_of(job, index) for index in range(3)]
    assert _look(job, *pods, now=NOW + 4) == Result((), 6.0)
    status = _status(job, _look(job, *pods, now=NOW + 10))
    assert _conditions(status) == {"FailureTarget": ("True", "DeadlineExceeded")}


def test_job_completes_only_when_all_its_pods_are_counted() -> None:
    """After SuccessCriteriaMet the Job waits for the last finalizer before it says Complete."""
    done = {"type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached", "message": ""}
    job = changed(a_job(), conditions=[done], completedIndexes="0-2", succeeded=3)
    pods = [a_pod_of(job, index, "Succeeded") for index in range(3)]
    assert list(_conditions(_status(job, _look(job, *pods)))) == ["SuccessCriteriaMet"]
    freed = [merge(pod, {"metadata": {"finalizers": None}}) for pod in pods]
    assert list(_conditions(_status(job, _look(job, *freed)))) == ["SuccessCriteriaMet", "Complete"]


def test_job_without_completions_ends_with_its_last_pod() -> None:
    """One success is enough, but pods that still run are waited for and not replaced."""
    job = changed(a_job(completions=None, completionMode="NonIndexed"), startTime="2027-01-15T08:00:00Z")
    done, running = a_pod_of(job, 0, "Succeeded"), a_pod_of(job, 1)
    early = _look(job, done, running)
    assert (_created(early), _deleted(early), _conditions(_status(job, early))) == ([], [], {})
    assert list(_conditions(_status(job, _look(job, done)))) == ["SuccessCriteriaMet"]


def test_job_for_no_pods_completes_at_once() -> None:
    """Completions 0 needs no pod: the success is announced and then stated."""
    job = a_job(parallelism=0, completions=0)
    status = _status(job, _look(job))
    assert list(_conditions(status)) == ["SuccessCriteriaMet"]
    assert list(_conditions(_status(changed(job, **status), _look(changed(job, **status))))) == [
        "SuccessCriteriaMet",
        "Complete",
    ]


def test_pods_of_a_deleted_job_lose_their_finalizer() -> None:
    """When the Job is deleted its pods lose the finalizer, so that garbage collection can finish."""
    job = a_job()
    pod = a_pod_of(job, 0)
    key = ("team-a", "sweep", job["metadata"]["uid"])
    (write,) = JobController(JobOptions()).reconcile(key, view(pod), NOW).writes
    assert isinstance(write, Patch)
    assert write.patch == PatchType.STRATEGIC
    assert write.body["metadata"]["$deleteFromPrimitiveList/finalizers"] == [
        "batch.kubernetes.io/job-tracking"
    ]


def test_priority_class_of_a_jobset_pod_becomes_its_label() -> None:
    """JobSet's pod webhook labels its pods with their priority, found by the class."""
    job = a_job()
    pod = job["spec"]["template"]
    pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] = "train"
    pod["spec"]["priorityClassName"] = "high"
    level = an_object("scheduling.k8s.io/v1", "PriorityClass", "high", {})
    level["metadata"].pop("namespace")
    key = ("team-a", "sweep", job["metadata"]["uid"])
    result = JobController(JobOptions()).reconcile(key, view(job, {**level, "value": 1000}), NOW)
    assert isinstance(result.writes[0], Create)
    assert result.writes[0].body["metadata"]["labels"]["jobset.sigs.k8s.io/priority"] == "1000"


def test_arguments_are_never_changed() -> None:
    """A look leaves the cached objects as they were."""
    job = changed(a_job(), startTime="2027-01-15T08:00:00Z")
    pods = [a_pod_of(job, index, phase) for index, phase in enumerate(("Running", "Failed", "Succeeded"))]
    before = repr((job, pods))
    _look(job, *pods)
    assert repr((job, pods)) == before
