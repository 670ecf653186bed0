"""The owner of an object, and the objects that a sweep looks at; on a cluster made of files."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.interface import Object, Objects
from muster.cluster.observe import sweep
from muster.cluster.observe.owner import read_owner
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.resources import Resource
from muster.policy import group_labels
from muster.policy.model import NoOp, Plan
from muster.policy.resolve import ResolvedOwner
from muster.runtime.steps import step_named
from tests.support.builders import (
    NOW,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_jobset_of_trainjob,
    a_namespace,
    a_pod,
    a_pod_group,
    a_replicated_job,
    a_trainjob,
    a_users_workload,
    a_workload,
    an_object,
    being_deleted,
    bound,
    labelled,
    named,
    of_uid,
    owned_by,
    pods_of,
    ref,
    template_labelled,
)

TEAM = "team-a"
TRAINJOB, JOBSET = a_trainjob(), a_jobset_of_trainjob()
CHILD = a_child_job(JOBSET, "node", 0)
GROUP = a_pod_group("llama-trainer-22222222", root=TRAINJOB)
OTHER = of_uid("another-uid")
ASIDE = a_jobset(modifiers=[named("aside"), owned_by(TRAINJOB)])
VOLCANO = an_object("batch.volcano.sh/v1alpha1", "Job", "llama", "volcano-uid")
OF_VOLCANO = a_users_workload()
OF_VOLCANO["spec"]["controllerRef"] = {"apiGroup": "batch.volcano.sh", "kind": "Job", "name": "llama"}


class PartlyServed(Snapshot):
    """The namespace and these objects; kinds in `missing` are not served."""

    def __init__(self, *objects: Object, missing: tuple[str, ...] = ()) -> None:
        super().__init__([a_namespace(), *objects])
        self._missing = missing

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """As the snapshot's."""
        self._refuse(resource)
        return super().get(resource, name, namespace)

    def list(self, resource: Resource, namespace: str = "", **options: Any) -> Objects:
        """As the snapshot's."""
        self._refuse(resource)
        return super().list(resource, namespace, **options)

    def _refuse(self, resource: Resource) -> None:
        if resource.kind in self._missing:
            raise errors.ApiGone("404 page not found", status=404)


@pytest.mark.parametrize(
    ("subject", "objects", "owner"),
    [
        pytest.param(a_job(), (a_job(OTHER),), "", id="another Job has its name"),
        pytest.param(CHILD, (CHILD, a_jobset(modifiers=[OTHER])), "", id="its JobSet was made anew"),
        pytest.param(ASIDE, (TRAINJOB, JOBSET, ASIDE), "JobSet aside", id="not the JobSet of the TrainJob"),
        pytest.param(a_job(), (a_job(owned_by(VOLCANO)),), "Job llama", id="below an unknown controller"),
        pytest.param(
            a_users_workload(), (a_users_workload(), a_job()), "Job llama", id="a user's Workload names it"
        ),
        pytest.param(a_users_workload(), (OF_VOLCANO, a_job()), "", id="a Job of another API group"),
    ],
)
def test_who_is_the_owner(subject: Object, objects: tuple[Object, ...], owner: str) -> None:
    """UIDs and API groups distinguish owners, names do not."""
    live, _ = read_owner(PartlyServed(*objects), ref(subject))
    assert (f"{live.owner.kind} {live.owner.metadata.name}" if live.owner else "") == owner


GONE = labelled({"muster.dev/owner-uid": "gone"})


@pytest.mark.parametrize(
    ("not_served", "removed"),
    [
        ((), ["PodGroup left-gone", "PodGroup llama-trainer-22222222", "Workload left"]),
        (("TrainJob",), ["PodGroup left-gone", "Workload left"]),
    ],
)
def test_orphans_are_removed(not_served: tuple[str, ...], removed: list[str]) -> None:
    """After another look at the owners; those of an owner whose kind is not served may be in use."""
    left = a_pod_group("left-gone", GONE, lambda group: group["metadata"].pop("ownerReferences"))
    workload = a_workload(modifiers=[named("left"), GONE])
    cluster = PartlyServed(a_job(), left, workload, GROUP, a_users_workload(), missing=not_served)
    step = step_named("create_workload")
    orphans = [found for found in step.swept(cluster, TEAM) if isinstance(found, sweep.PossibleOrphan)]
    assert [f"{one.kind} {one.name}" for one in orphans] == removed
    plans = [step.plan(step.observe(cluster, orphan), NOW) for orphan in orphans]
    assert [[action.target.name for action in plan.actions] for plan in plans if isinstance(plan, Plan)] == [
        [orphan.name] for orphan in orphans
    ]
    alive = [a_job(of_uid("gone")), left, workload]
    assert all(
        isinstance(step.plan(step.observe(PartlyServed(*objects), orphan), NOW), NoOp)
        for objects in (alive, [])
        for orphan in (orphans[0], orphans[-1])
    )


def test_a_sweep_looks_at_gated_pods() -> None:
    """Each group that exists and has some, and each pod that has no schedulingGroup."""
    job, other, lost = a_job(pods=4), a_job(named("other"), of_uid("99999999-x")), a_job(named("lost"))
    bare = a_pod(None, 0, named("bare"), lambda pod: pod["spec"].pop("schedulingGroup"))
    pods = (*pods_of(job), a_pod(other, 0, bound), a_pod(other, 1, being_deleted), *pods_of(lost), bare)
    cluster = PartlyServed(a_pod_group(), *pods)
    assert [found.name for found in sweep.gated_pods(cluster, TEAM)] == ["llama-main-33333333", "bare"]


def test_a_jobset_of_an_earlier_version_has_the_groups_of_its_jobs() -> None:
    """Its templates have no labels, its Jobs have: membership is what pods and Jobs carry."""
    jobset = a_jobset(*map(a_replicated_job, ("a", "b")), enabled=False)
    named_after = {name: template_labelled({group_labels.GROUP: name}) for name in ("a", "b")}
    jobs = [a_child_job(jobset, name, 0, change) for name, change in named_after.items()]
    for workload in ([], [a_workload(a_gang("a", 2), a_gang("b", 2), root=jobset)]):
        _, resolved = read_owner(Snapshot([a_namespace(), jobset, *jobs, *workload]), ref(jobset))
        assert isinstance(resolved, ResolvedOwner)
        assert set(resolved.groups) == {"a", "b"}
