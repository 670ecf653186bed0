"""Views read the fields that matter, whatever other fields an object has or lacks."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from muster.objects.meta import KubernetesObject, ObjectRef, turned_at
from muster.objects.pods import Pod
from muster.objects.resources import JOBS, NODES, PODS, WORKLOADS, by_kind
from muster.objects.scheduling import PodGroup, SchedulingPolicy, Workload
from muster.policy.owners.job import Job
from muster.policy.owners.jobset import JobSet
from tests.support.builders import (
    Object,
    a_job,
    a_pod,
    a_pod_group,
    a_workload,
    being_deleted,
    owned_by,
    placed,
    with_condition,
    with_spec,
)


def test_null_means_absent() -> None:
    """Structs without omitempty come back as null."""
    body = a_workload(modifiers=[with_spec(compositePodGroupTemplates=None)])
    body["metadata"]["annotations"] = None
    workload = Workload.read(body)
    assert (workload.spec.composite_pod_group_templates, workload.metadata.annotations) == ((), {})


def test_a_job_without_anything_has_the_apis_defaults() -> None:
    """One pod, NonIndexed, run by the Job controller."""
    job = Job.read({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}})
    assert (job.spec.parallelism, job.spec.completions, job.spec.indexed) == (1, None, False)
    assert (job.spec.managed_by, job.finished, job.being_deleted) == (
        "kubernetes.io/job-controller",
        False,
        False,
    )


def test_a_field_of_the_wrong_type_is_an_error() -> None:
    """No API server would have stored it."""
    with pytest.raises(pydantic.ValidationError, match="parallelism"):
        Job.read(a_job(with_spec(parallelism="many")))


def test_views_do_not_change() -> None:
    """A plan cannot write into what was observed."""
    job = Job.read(a_job())
    with pytest.raises(pydantic.ValidationError):
        setattr(job, "kind", "Pod")  # noqa: B010 - what a type checker refuses must fail at run time too


def test_the_controller_is_the_owner_that_controls() -> None:
    """Whatever its place in the list."""
    note = {"apiVersion": "v1", "kind": "Note", "metadata": {"name": "n", "uid": "n"}}
    controller = KubernetesObject.read(a_pod(None, 0, owned_by(note, controller=False))).metadata.controller
    assert controller is not None
    assert (controller.kind, controller.group) == ("Job", "batch")


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        pytest.param(ObjectRef("v1", "Pod", "team-a", "p"), "Pod team-a/p", id="with its namespace"),
        pytest.param(ObjectRef("v1", "Node", "", "n"), "Node n", id="or without one"),
    ],
)
def test_references_in_messages(ref: ObjectRef, text: str) -> None:
    """Kind, namespace and name; the UID is for machines."""
    assert str(ref) == text


def _group(kind: str, status: str, **fields: str) -> PodGroup:
    return PodGroup.read(a_pod_group("g", with_condition(kind, status, **fields)))


def test_whether_a_group_was_placed() -> None:
    """Its condition says so, and never turns back."""
    assert PodGroup.read(a_pod_group("g", placed)).placed
    assert not PodGroup.read(a_pod_group()).placed
    assert not _group("PodGroupInitiallyScheduled", "False").placed


def test_the_refusal_of_the_scheduler() -> None:
    """Reason and message while the condition is False."""
    refused = _group("PodGroupInitiallyScheduled", "False", reason="Unschedulable", message="no room")
    assert refused.refusal == ("Unschedulable", "no room")
    assert PodGroup.read(a_pod_group("g", placed)).refusal is None
    assert PodGroup.read(a_pod_group()).refusal is None


@pytest.mark.parametrize(
    ("time", "year"),
    [
        pytest.param("2026-11-21T08:00:00Z", 2026, id="as Kubernetes writes it"),
        pytest.param("0000-01-01T00:00:00Z", None, id="the year 0"),
        pytest.param("2016-12-31T23:59:60Z", None, id="a leap second"),
        pytest.param("2026-11-21T08:00:00", None, id="without a time zone"),
        pytest.param("", None, id="none"),
    ],
)
def test_the_time_of_a_condition(time: str, year: int | None) -> None:
    """Who may write a status may write any text that the API server takes for a time."""
    found = turned_at(
        [{"type": "Suspended", "status": "False", "lastTransitionTime": time}], "Suspended", "False"
    )
    assert (found.year if found else None) == year


def test_a_basic_group_has_no_min_count() -> None:
    """0 is the number that no gang has."""
    assert SchedulingPolicy(basic={}).min_count == 0


@pytest.mark.parametrize(
    ("phase", "finished"),
    [
        pytest.param("Succeeded", True, id="a pod that succeeded"),
        pytest.param("Failed", True, id="a pod that failed"),
        pytest.param("Running", False, id="a pod that runs"),
        pytest.param("Unknown", False, id="a pod of a lost node"),
    ],
)
def test_finished_pods(phase: str, finished: bool) -> None:
    """The scheduler no longer counts what has ended."""
    pod = Pod.read(a_pod(None, 0, being_deleted) | {"status": {"phase": phase}})
    assert (pod.finished, pod.being_deleted) == (finished, True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(PODS.path(), "/api/v1/pods", id="all of the core group"),
        pytest.param(NODES.path("n", "team-a"), "/api/v1/nodes/n", id="a kind without namespaces"),
        pytest.param(
            JOBS.path("j", "team-a", "status"),
            "/apis/batch/v1/namespaces/team-a/jobs/j/status",
            id="a subresource",
        ),
        pytest.param(
            WORKLOADS.path(namespace="team-a"),
            "/apis/scheduling.k8s.io/v1beta1/namespaces/team-a/workloads",
            id="a collection in a namespace",
        ),
    ],
)
def test_paths(path: str, expected: str) -> None:
    """Where the API server keeps things."""
    assert path == expected


def test_kinds_are_distinguished_by_group() -> None:
    """Any version of a group, no kind of another."""
    assert by_kind("scheduling.k8s.io/v1alpha2", "Workload") == WORKLOADS
    with pytest.raises(LookupError) as unknown:
        by_kind("kueue.x-k8s.io/v1beta1", "Workload")
    assert "Workload" in str(unknown.value)
    assert "kueue.x-k8s.io/v1beta1" in str(unknown.value)


def test_an_objects_own_reference() -> None:
    """As every action names its target."""
    body: Object = a_job()
    assert Job.read(body).ref == ObjectRef("batch/v1", "Job", "team-a", "llama", body["metadata"]["uid"])


@pytest.mark.parametrize(
    "fields",
    [
        {"metadata": {"ownerReferences": [0] * 5000}},
        {"metadata": {"labels": {str(number): 0 for number in range(5000)}}},
        {"metadata": {"annotations": {str(number): 0 for number in range(5000)}}},
        {"metadata": {}, "status": {"conditions": [0] * 5000}},
        {"metadata": {}, "spec": {"replicatedJobs": [{}] * 5000}},
    ],
)
def test_thousands_of_wrong_entries_are_one_fault(fields: Any) -> None:
    """Pydantic would make a fault of each, of a kilobyte."""
    with pytest.raises(pydantic.ValidationError) as caught:
        JobSet.read({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", **fields})
    assert caught.value.error_count() == 1


def test_the_first_entries_are_read_but_all_conditions() -> None:
    """A status write has to repeat the conditions of others; of other lists, more entries take a second."""
    metadata = {"ownerReferences": [{"uid": str(number)} for number in range(5000)]}
    jobs = [{"name": str(number)} for number in range(5000)]
    conditions = [{"type": str(number)} for number in range(5000)]
    jobset = JobSet.read(
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": metadata,
            "spec": {"replicatedJobs": jobs},
            "status": {"conditions": conditions},
        }
    )
    assert [owner.uid for owner in jobset.metadata.owner_references] == [str(n) for n in range(100)]
    assert [job.name for job in jobset.spec.replicated_jobs] == [str(n) for n in range(1000)]
    assert len(jobset.status.conditions) == 5000
