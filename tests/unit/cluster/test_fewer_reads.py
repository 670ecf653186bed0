"""The reads that an event saves: a policy before a Workload, an object twice, the other pods of a group."""

from __future__ import annotations

from muster.events.model import Happened, ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.tree.members import LiveMembers
from muster.steps import step_named
from tests.support.builders import a_gang, a_job, a_pod, a_pod_group, a_workload, ref
from tests.unit.cluster.counting import CountingSnapshot

CREATE_POD_GROUPS = step_named("create_pod_groups")
PATCH_PODS = step_named("patch_pods")


def test_create_pod_groups_reads_no_policy_without_a_workload() -> None:
    """Most Jobs are added before their Workload is."""
    cluster = CountingSnapshot(a_job())
    inputs = CREATE_POD_GROUPS.observe(cluster, ref(a_job()))
    assert inputs.members == LiveMembers()
    assert [call.rpartition(" ")[0] for call in cluster.reads] == ["get Job", "list", "get Workload"]


def test_create_pod_groups_reads_the_workload_of_the_event_once() -> None:
    """Its event names it, and so does its owner."""
    job = a_job()
    workload = a_workload(a_gang("main", 2), root=job)
    cluster = CountingSnapshot(job, workload)
    CREATE_POD_GROUPS.observe(cluster, ref(workload))
    assert sum(call.startswith("get Workload") for call in cluster.reads) == 1


def test_a_pod_before_its_group_costs_one_read() -> None:
    """By the name in its event."""
    pod = a_pod()
    event = ResourceEvent("1", Happened.ADD, ref(pod), pod)
    cluster = CountingSnapshot(a_job(), pod)
    subject = PATCH_PODS.predicate(event)
    assert isinstance(subject, ObjectRef)
    assert PATCH_PODS.observe(cluster, subject).awaited == "llama-main-33333333"
    assert cluster.reads == ["get PodGroup llama-main-33333333"]


def test_a_pod_is_of_the_group_that_it_names_itself() -> None:
    """Not of the one in its event, which anyone could have sent."""
    pod = a_pod()
    forged = {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": "other"}}}
    subject = PATCH_PODS.predicate(ResourceEvent("1", Happened.ADD, ref(pod), forged))
    assert isinstance(subject, ObjectRef)
    inputs = PATCH_PODS.observe(CountingSnapshot(a_job(), pod, a_pod_group("other")), subject)
    assert inputs.groups == ()
