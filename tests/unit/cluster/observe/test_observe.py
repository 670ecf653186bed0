"""The objects that each step reads, and those it does not read; on a cluster made of files."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster.interface import Object
from muster.cluster.observe.owner import read_owner
from muster.objects.meta import ObjectRef
from muster.policy import group_labels
from muster.policy.sources.source import ANNOTATION
from muster.runtime.steps import step_named
from tests.support.builders import (
    TRAINJOB_UID,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_jobset_of_trainjob,
    a_pod,
    a_pod_group,
    a_replicated_job,
    a_trainjob,
    a_users_workload,
    a_workload,
    an_object,
    bound,
    labelled,
    named,
    of_uid,
    owned_by,
    placed,
    pods_of,
    ref,
    unstamped,
    with_condition,
    with_spec,
)
from tests.support.trees import CHAT, DECODE, GROUPS, PREFILL, a_child_group, a_composite, a_policy
from tests.support.trees import JOBSET as CHAT_JOBSET
from tests.unit.cluster.counting import CountingSnapshot

CREATE_WORKLOAD = step_named("create_workload")
CREATE_POD_GROUPS = step_named("create_pod_groups")
PATCH_PODS = step_named("patch_pods")
RESIZE_GANG = step_named("resize_gang")
EMIT_CONDITIONS = step_named("emit_conditions")

TRAINJOB, JOBSET = a_trainjob(), a_jobset_of_trainjob()
CHILD = a_child_job(JOBSET, "node", 0)
CHAIN = (TRAINJOB, JOBSET, CHILD)
GROUP = a_pod_group("llama-trainer-22222222", root=TRAINJOB)
TREE = (
    CHAT_JOBSET | {"metadata": CHAT_JOBSET["metadata"] | {"annotations": {ANNOTATION: a_policy()}}},
    *(PREFILL, DECODE),
    a_composite(CHAT, 2),
    *(a_child_group(name, once=False) for name in GROUPS),
    *(pod for job in (PREFILL, DECODE) for pod in pods_of(job)),
)


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(ref(TRAINJOB), id="from the TrainJob"),
        pytest.param(ref(JOBSET), id="from its JobSet"),
        pytest.param(ref(CHILD), id="from a Job of that"),
        pytest.param(ref(GROUP), id="from a PodGroup"),
        pytest.param(ref(a_workload(root=TRAINJOB)), id="from its Workload"),
    ],
)
def test_the_root_owner_is_found(subject: ObjectRef) -> None:
    """Whatever the event was about, the plan is for the root owner."""
    workload = a_workload(a_gang("trainer", 2), root=TRAINJOB)
    inputs = RESIZE_GANG.observe(CountingSnapshot(*CHAIN, GROUP, workload, *pods_of(CHILD)), subject)
    live, members = inputs.resolved.live, inputs.members
    assert live.runner is not None
    assert (inputs.resolved.owner.ref, live.runner.ref) == (ref(TRAINJOB), ref(JOBSET))
    assert [job.metadata.name for job in members.jobs] == ["llama-node-0"]
    assert [group.metadata.name for group in members.groups] == ["llama-trainer-22222222"]
    assert [pod.metadata.name for pod in members.pods] == ["llama-node-0-0", "llama-node-0-1"]
    assert live.workload is not None
    assert live.subject == subject


def _owner_of(subject: ObjectRef, *objects: Object) -> str:
    live, _ = read_owner(CountingSnapshot(*objects), subject)
    return f"{live.owner.kind} {live.owner.metadata.name}" if live.owner else ""


OTHER = "another-uid"
ASIDE = a_jobset(modifiers=[named("aside"), owned_by(TRAINJOB)])
"""Made by hand, with the TrainJob as its controller."""
VOLCANO = an_object("batch.volcano.sh/v1alpha1", "Job", "llama", "volcano-uid")
VOLCANOS = a_users_workload()
VOLCANOS["spec"]["controllerRef"] = {"apiGroup": "batch.volcano.sh", "kind": "Job", "name": "llama"}


@pytest.mark.parametrize(
    ("subject", "objects", "owner"),
    [
        pytest.param(ref(a_job()), (), "", id="gone"),
        pytest.param(ref(a_job()), (a_job(of_uid(OTHER)),), "", id="another Job has its name"),
        pytest.param(
            ref(CHILD), (CHILD, a_jobset(modifiers=[of_uid(OTHER)])), "", id="its JobSet was made anew"
        ),
        pytest.param(ref(JOBSET), (JOBSET, a_trainjob(of_uid(OTHER))), "", id="its TrainJob was made anew"),
        pytest.param(
            ref(ASIDE), (TRAINJOB, JOBSET, ASIDE), "JobSet aside", id="a TrainJob's JobSet has its name"
        ),
        pytest.param(
            ref(GROUP),
            (*CHAIN, a_pod_group("llama-trainer-22222222", of_uid(OTHER))),
            "",
            id="another PodGroup",
        ),
        pytest.param(
            ref(a_job()),
            (a_job(owned_by(VOLCANO)),),
            "Job llama",
            id="a Job under a controller unknown to us is the root",
        ),
        pytest.param(
            ref(a_users_workload()),
            (a_users_workload(), a_job()),
            "Job llama",
            id="a user's Workload names its owner",
        ),
        pytest.param(
            ref(
                a_workload(
                    modifiers=[
                        with_spec(controllerRef={"apiGroup": "apps", "kind": "Deployment", "name": "x"})
                    ]
                )
            ),
            (
                a_workload(
                    modifiers=[
                        with_spec(controllerRef={"apiGroup": "apps", "kind": "Deployment", "name": "x"})
                    ]
                ),
                a_job(),
            ),
            "Job llama",
            id="a Workload without a known controllerRef is its controller's",
        ),
        pytest.param(
            ref(a_users_workload()),
            (VOLCANOS, a_job()),
            "",
            id="a Job of another API group is not ours",
        ),
    ],
)
def test_who_is_not_the_owner(subject: ObjectRef, objects: tuple[Object, ...], owner: str) -> None:
    """UIDs and API groups distinguish owners, names do not."""
    assert _owner_of(subject, *objects) == owner


def test_a_trainjob_sees_only_its_own_jobset() -> None:
    """One of an earlier TrainJob of that name is not it."""
    stale = a_jobset(modifiers=[owned_by(a_trainjob(of_uid(OTHER)))])
    assert CREATE_WORKLOAD.observe(CountingSnapshot(TRAINJOB, stale), ref(TRAINJOB)).live.runner is None


def test_jobs_of_an_earlier_jobset_are_left_out() -> None:
    """They have its name in their labels, not its UID in their owner."""
    stale = a_child_job(a_jobset(a_replicated_job("node"), modifiers=[of_uid(OTHER)]), "node", 1)
    cluster = CountingSnapshot(*CHAIN, stale, a_workload(a_gang("trainer", 2), root=TRAINJOB))
    assert len(CREATE_POD_GROUPS.observe(cluster, ref(TRAINJOB)).members.jobs) == 1


def test_create_workload_reads_no_pods_where_it_needs_none() -> None:
    """The hot path: owner, namespace, Workloads and the policy sources."""
    cluster = CountingSnapshot(a_job())
    inputs = CREATE_WORKLOAD.observe(cluster, ref(a_job()))
    assert inputs.members is None
    assert "list Pod" not in cluster.reads
    assert not any("PodGroup" in call for call in cluster.reads)


def test_create_workload_reads_pods_and_groups_of_a_skipped_owner() -> None:
    """A skipped owner may have stamped pods."""
    job = a_job(with_spec(managedBy="kueue.x-k8s.io/multikueue"))
    inputs = CREATE_WORKLOAD.observe(CountingSnapshot(job, *pods_of(job), a_pod_group()), ref(job))
    assert (len(inputs.members.pods), len(inputs.members.groups)) == (2, 1)


def test_an_owner_that_is_left_alone_costs_no_workload() -> None:
    """A finished owner is known by itself."""
    job = a_job(with_condition("Complete"))
    cluster = CountingSnapshot(job)
    CREATE_WORKLOAD.observe(cluster, ref(job))
    assert cluster.reads == ["get Job llama"]


@pytest.mark.parametrize(
    ("earlier", "objects", "lives"),
    [
        pytest.param(labelled({"muster.dev/owner-uid": "old"}), (), False, id="its owner is gone"),
        pytest.param(
            labelled({"muster.dev/owner-uid": TRAINJOB_UID}), (a_trainjob(named("x")),), True, id="it lives"
        ),
        pytest.param(
            labelled({"muster.dev/owner-uid": TRAINJOB_UID}),
            (a_trainjob(named("x"), of_uid("new")),),
            False,
            id="another one has its name",
        ),
    ],
)
def test_whether_the_owner_of_a_leftover_lives(
    earlier: Any, objects: tuple[Object, ...], lives: bool
) -> None:
    """A Workload under our name that Muster made for another UID."""
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainJob", "name": "x"}
    leftover = a_workload(modifiers=[earlier, with_spec(controllerRef=reference)])
    inputs = CREATE_WORKLOAD.observe(CountingSnapshot(a_job(), leftover, *objects), ref(a_job()))
    assert (inputs.live.name_holder is not None) == lives


def test_a_strangers_workload_may_name_a_kind_unknown_to_us() -> None:
    """It is looked at, not climbed."""
    reference = {"apiGroup": "batch.volcano.sh", "kind": "Job", "name": "x"}
    stranger = a_workload(modifiers=[with_spec(controllerRef=reference)])
    inputs = CREATE_WORKLOAD.observe(CountingSnapshot(a_job(), stranger), ref(a_job()))
    assert inputs.live.name_holder is None


def test_many_groups_are_read_with_one_list() -> None:
    """Up to eight one by one, more at once."""
    job = a_job(pods=9)
    job["spec"]["template"]["metadata"]["labels"][group_labels.GROUP_SIZE] = "1"
    groups = [a_pod_group(f"llama-main-33333333-{index}") for index in range(9)]
    cluster = CountingSnapshot(job, a_users_workload(), *groups, a_pod_group("llama-other"))
    assert len(CREATE_POD_GROUPS.observe(cluster, ref(job)).members.groups) == 9
    assert cluster.reads.count("list PodGroup") == 1


def _failed_create(name: str, at: str, message: str, reason: str = "FailedCreate") -> Object:
    event = an_object("v1", "Event", name, name)
    involved = {"uid": a_job()["metadata"]["uid"]}
    return event | {"involvedObject": involved, "reason": reason, "lastTimestamp": at, "message": message}


def test_the_latest_failed_create_is_reported_while_pods_are_missing() -> None:
    """A full quota is reported nowhere else."""
    events = (
        _failed_create("a", "2026-11-21T08:00:02Z", "exceeded quota"),
        _failed_create("b", "2026-11-21T08:00:01Z", "older"),
        _failed_create("c", "2026-11-21T08:00:09Z", "other", reason="SuccessfulCreate"),
    )
    missing = CountingSnapshot(a_job(), *events, a_pod())
    assert EMIT_CONDITIONS.observe(missing, ref(a_job())).failed_create == "exceeded quota"
    complete = CountingSnapshot(a_job(), *events, *pods_of(a_job()))
    assert EMIT_CONDITIONS.observe(complete, ref(a_job())).failed_create == ""
    assert "list Event" not in complete.reads


def test_failed_creates_of_many_jobs_are_read_with_one_list() -> None:
    """Up to eight Jobs one by one, more at once; those of other Jobs in the namespace are not theirs."""
    jobset = a_jobset(a_replicated_job("a", replicas=9))
    jobs = [a_child_job(jobset, "a", index) for index in range(9)]
    full = _failed_create("a", "2026-11-21T08:00:01Z", "exceeded quota")
    full["involvedObject"]["uid"] = jobs[8]["metadata"]["uid"]
    other = _failed_create("b", "2026-11-21T08:00:02Z", "of another Job")
    cluster = CountingSnapshot(jobset, *jobs, full, other)
    assert EMIT_CONDITIONS.observe(cluster, ref(jobset)).failed_create == "exceeded quota"
    assert cluster.reads.count("list Event") == 1


class TestPods:
    """patch_pods reads as little as it can."""

    def test_from_a_pod(self) -> None:
        """The pod and its group: neither the owner nor the other pods, which have events of their own."""
        cluster = CountingSnapshot(a_job(), a_pod_group(), *pods_of(a_job()))
        inputs = PATCH_PODS.observe(cluster, ref(a_pod()))
        assert (len(inputs.groups), len(inputs.pods), inputs.tree) == (1, 1, None)
        assert cluster.reads == ["get Pod llama-0", "get PodGroup llama-main-33333333"]

    def test_from_a_group(self) -> None:
        """Pods of the owner with another stamp are not the group's."""
        cluster = CountingSnapshot(
            a_job(), a_pod_group(), a_pod(), a_pod(None, 1, with_spec(schedulingGroup={"podGroupName": "x"}))
        )
        assert len(PATCH_PODS.observe(cluster, ref(a_pod_group())).pods) == 1

    def test_from_a_trainjobs_group(self) -> None:
        """Its pods are found by the JobSet, which has the TrainJob's name."""
        inputs = PATCH_PODS.observe(CountingSnapshot(*CHAIN, GROUP, *pods_of(CHILD)), ref(GROUP))
        assert len(inputs.pods) == 2

    def test_from_a_group_without_owner(self) -> None:
        """Labelled pods that name it."""
        group = a_pod_group()
        del group["metadata"]["ownerReferences"]
        assert len(PATCH_PODS.observe(CountingSnapshot(group, a_pod()), ref(group)).pods) == 1

    @pytest.mark.parametrize(
        "name",
        [
            pytest.param("llama,of=mine in", id="a piece of a selector"),
            pytest.param("l" * 64, id="longer than a label may be"),
            pytest.param("system:llama", id="a name, but no label"),
        ],
    )
    def test_from_a_group_whose_owner_has_an_impossible_name(self, name: str) -> None:
        """No pod is labelled so; to ask for it would be answered with 400."""
        group = a_pod_group()
        group["metadata"]["ownerReferences"][0]["name"] = name
        cluster = CountingSnapshot(group, a_pod())
        assert PATCH_PODS.observe(cluster, ref(group)).pods == ()
        assert "list Pod" not in cluster.reads

    def test_the_owner_of_a_gang_that_was_placed_before(self) -> None:
        """Only then the Jobs show whether the gates may go."""
        group = a_pod_group("llama-main-33333333", placed)
        inputs = PATCH_PODS.observe(CountingSnapshot(a_job(), group, *pods_of(a_job())), ref(a_pod()))
        assert inputs.tree.resolved.owner.ref == ref(a_job())
        assert (inputs.subject, len(inputs.groups), len(inputs.tree.members.jobs)) == (ref(a_pod()), 1, 1)

    @pytest.mark.parametrize(
        "subject",
        [
            pytest.param(ref(a_pod(PREFILL)), id="a pod"),
            pytest.param(ref(a_child_group("decode", once=False)), id="a PodGroup of it"),
            pytest.param(ref(a_composite(CHAT, 2)), id="its CompositePodGroup"),
        ],
    )
    def test_a_tree_of_groups(self, subject: ObjectRef) -> None:
        """All that is placed together, with the owner, whichever of it the event is about."""
        inputs = PATCH_PODS.observe(CountingSnapshot(*TREE), subject)
        assert inputs.subject == subject
        assert {group.metadata.name for group in inputs.groups} == set(GROUPS.values())
        assert [group.metadata.name for group in inputs.tree.members.composites] == [CHAT]
        assert (len(inputs.tree.members.jobs), len(inputs.pods)) == (2, 4)

    def test_a_tree_of_a_former_policy(self) -> None:
        """Its groups are placed together as before: their parents are read, whatever the policy says now."""
        objects = [body for body in TREE if body["kind"] != "JobSet"]
        inputs = PATCH_PODS.observe(CountingSnapshot(CHAT_JOBSET, *objects), ref(a_pod(PREFILL)))
        assert {group.metadata.name for group in inputs.groups} == set(GROUPS.values())
        assert [group.metadata.name for group in inputs.tree.members.composites] == [CHAT]

    def test_a_placed_gang_without_an_owner(self) -> None:
        """A PodGroup that a person made for labelled pods: they are let go though no owner can be read."""
        group = a_pod_group("llama-main-33333333", placed)
        del group["metadata"]["ownerReferences"]
        inputs = PATCH_PODS.observe(CountingSnapshot(group, a_pod()), ref(group))
        assert (len(inputs.groups), len(inputs.pods), inputs.tree) == (1, 1, None)

    @pytest.mark.parametrize(
        "composites",
        [
            pytest.param([], id="is gone"),
            pytest.param([a_composite(CHAT, 2)], id="has an owner that is gone"),
        ],
    )
    def test_a_composite_that_leads_nowhere(self, composites: list[Object]) -> None:
        """Nothing is left to look at."""
        inputs = PATCH_PODS.observe(CountingSnapshot(*composites), ref(a_composite(CHAT, 2)))
        assert (inputs.groups, inputs.pods) == ((), ())

    @pytest.mark.parametrize(
        ("objects", "pods"),
        [
            pytest.param((), 0, id="the pod is gone"),
            pytest.param((a_pod(None, 0, of_uid(OTHER)),), 0, id="another pod has its name"),
            pytest.param((a_pod(),), 1, id="its group does not exist yet"),
            pytest.param(
                (a_pod(None, 0, bound), a_pod_group()), 1, id="it has no gate: its group is not read"
            ),
            pytest.param((a_pod(None, 0, unstamped),), 1, id="it has no group"),
        ],
    )
    def test_no_more_than_the_pod(self, objects: tuple[Object, ...], pods: int) -> None:
        """There is no group to look at."""
        inputs = PATCH_PODS.observe(CountingSnapshot(*objects), ref(a_pod()))
        assert (len(inputs.pods), inputs.groups) == (pods, ())
