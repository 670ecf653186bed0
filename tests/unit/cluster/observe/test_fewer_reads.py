"""The reads and parsing that an event saves: a policy before a Workload, an object twice, pods of others."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from muster.events.model import Happened, ResourceEvent
from muster.objects.meta import ObjectRef
from muster.policy.model import NoOp
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.members import LiveMembers
from muster.runtime.steps import step_named
from tests.support.builders import (
    Modifier,
    Object,
    a_gang,
    a_job,
    a_namespace,
    a_pod,
    a_pod_group,
    a_users_workload,
    a_workload,
    placed,
    ref,
)
from tests.unit.cluster.counting import CountingSnapshot

CREATE_WORKLOAD = step_named("create_workload")
CREATE_POD_GROUPS = step_named("create_pod_groups")
EMIT_CONDITIONS = step_named("emit_conditions")
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


def changed(happened: Happened, group: Object) -> ObjectRef:
    """Return the subject of an event of a PodGroup."""
    subject = EMIT_CONDITIONS.predicate(ResourceEvent("1", happened, ref(group), group))
    assert isinstance(subject, ObjectRef)
    return subject


def created_alone(body: Object) -> None:
    """The object was written by its creator, and its status by the scheduler."""
    body["metadata"]["managedFields"] = [
        {"manager": "muster", "operation": "Update"},
        {"manager": "kube-scheduler", "operation": "Update", "subresource": "status"},
    ]


def resized(body: Object) -> None:
    """The object was also written by another client than its creator."""
    body["metadata"]["managedFields"] = [{"manager": "muster"}, {"manager": "kubectl"}]


def scaled(job: Object) -> None:
    """The spec of the Job was changed once."""
    job["metadata"]["generation"] = 2


def says_scheduled(job: Object) -> None:
    """Muster's conditions of the Job are true, and its spec was never changed."""
    job["metadata"]["generation"] = 1
    types = ("muster.dev/PodGroupsReady", "muster.dev/PodGroupsScheduled")
    job["status"] = {"conditions": [{"type": name, "status": "True"} for name in types]}


def test_a_group_that_was_placed_meanwhile_is_not_examined_when_it_is_added() -> None:
    """It has an event of its being placed."""
    group = a_pod_group("llama-main-33333333", placed)
    cluster = CountingSnapshot(a_job(), group, a_pod())
    resolved = EMIT_CONDITIONS.observe(cluster, changed(Happened.ADD, group)).resolved
    assert isinstance(resolved, NoOp)
    assert cluster.reads == ["get PodGroup llama-main-33333333", "get Job llama"]


@pytest.mark.parametrize(
    ("job", "group", "examined"),
    [
        pytest.param(
            [says_scheduled], [placed, created_alone], False, id="its owner says that it is scheduled"
        ),
        pytest.param([], [placed, created_alone], True, id="its owner does not say so"),
        pytest.param([says_scheduled], [created_alone], True, id="it is not placed"),
        pytest.param([says_scheduled], [placed, resized], True, id="it was resized"),
        pytest.param([says_scheduled, scaled], [placed, created_alone], True, id="the Job was scaled"),
    ],
)
def test_a_group_is_not_examined_twice(job: list[Modifier], group: list[Modifier], examined: bool) -> None:
    """What comes again after its pods were bound changes nothing."""
    body = a_pod_group("llama-main-33333333", *group)
    cluster = CountingSnapshot(a_namespace(), a_job(*job), body, a_pod())
    resolved = EMIT_CONDITIONS.observe(cluster, changed(Happened.UPDATE, body)).resolved
    assert isinstance(resolved, ResolvedOwner) == examined


def test_a_group_that_is_placed_is_read_once() -> None:
    """It stays placed; one that is not placed is read again, after its pods."""
    for modifiers, reads in (([placed], 1), ([], 2)):
        group = a_pod_group("llama-main-33333333", *modifiers)
        cluster = CountingSnapshot(a_namespace(), a_job(), group, a_pod())
        members = EMIT_CONDITIONS.observe(cluster, changed(Happened.UPDATE, group)).members
        assert [found.metadata.name for found in members.groups] == ["llama-main-33333333"]
        assert cluster.reads.count("get PodGroup llama-main-33333333") == reads


def test_groups_are_in_the_order_of_their_names() -> None:
    """Whichever the event is about: a condition names the first one's reason, and must not change in turn."""
    names = ["llama-main-33333333", "llama-other-33333333"]
    groups = [a_pod_group(name, placed) for name in names]
    pods = [a_pod(None, index) for index in range(2)]
    pods[1]["spec"]["schedulingGroup"] = {"podGroupName": names[1]}
    for group in groups:
        cluster = CountingSnapshot(a_namespace(), a_job(), *groups, *pods)
        members = EMIT_CONDITIONS.observe(cluster, changed(Happened.UPDATE, group)).members
        assert [found.metadata.name for found in members.groups] == names


JOB = {"apiGroup": "batch", "kind": "Job", "name": "llama"}


@pytest.mark.parametrize(
    ("named", "parsed"),
    [
        pytest.param({**JOB, "name": "other"}, 0, id="of another"),
        pytest.param({**JOB, "kind": "JobSet"}, 0, id="of another kind"),
        pytest.param({**JOB, "apiGroup": "example.com"}, 0, id="of another group"),
        pytest.param(None, 0, id="of none"),
        pytest.param(JOB, 1, id="of it"),
    ],
)
def test_only_workloads_that_name_the_owner_are_parsed(named: Object | None, parsed: int) -> None:
    """A namespace may have thousands of others beside each of its Jobs."""
    spec = {"podGroupTemplates": [{"name": "main"}]} | ({"controllerRef": named} if named else {})
    inputs = CREATE_WORKLOAD.observe(
        CountingSnapshot(a_job(), a_users_workload() | {"spec": spec}), ref(a_job())
    )
    assert len(inputs.live.other_workloads) == parsed


@pytest.mark.parametrize(("number", "templates"), [(1, 2), (2, 0)])
def test_templates_are_read_of_the_only_workload(number: int, templates: int) -> None:
    """Of two for one owner none is used, and each may have thousands of templates."""
    tree = {"name": "tree", "podGroupTemplates": [{"name": "main"}]}
    spec = {"controllerRef": JOB, "compositePodGroupTemplates": [tree]}
    workloads = [a_users_workload(name=f"own-{index}") | {"spec": spec} for index in range(number)]
    inputs = CREATE_WORKLOAD.observe(CountingSnapshot(a_job(), *workloads), ref(a_job()))
    found = inputs.live.other_workloads
    assert [len(list(workload.hierarchy())) for workload in found] == [templates] * number


def test_a_workload_of_unknown_owner_is_parsed() -> None:
    """A sweep keeps a text in place of a large spec; the error lets it read the owner and these live."""
    workload = a_users_workload() | {"spec": "more than 30000 bytes"}
    with pytest.raises(ValidationError):
        CREATE_WORKLOAD.observe(CountingSnapshot(a_job(), workload), ref(a_job()))


def test_the_owner_that_a_users_own_workload_names_is_read_once() -> None:
    """It has the name of Muster's, and no label with the UID of an owner to look for."""
    job = a_job()
    cluster = CountingSnapshot(job, a_users_workload(root=job, name=a_workload()["metadata"]["name"]))
    CREATE_WORKLOAD.observe(cluster, ref(job))
    assert cluster.reads.count("get Job llama") == 1
