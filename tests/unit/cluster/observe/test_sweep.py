"""The objects that a sweep looks at."""

from __future__ import annotations

import pytest

from muster.cluster.observe import sweep
from muster.policy.model import Plan
from muster.policy.plans.orphans import OrphanInputs, plan_orphan
from tests.support.builders import (
    a_child_job,
    a_job,
    a_jobset,
    a_jobset_of_trainjob,
    a_pod,
    a_pod_group,
    a_trainjob,
    a_users_workload,
    a_workload,
    an_object,
    annotated,
    being_deleted,
    bound,
    labelled,
    named,
    of_uid,
    owned_by,
    pods_of,
    ref,
    with_condition,
)
from tests.unit.cluster.counting import CountingSnapshot

TRAINJOB, JOBSET = a_trainjob(), a_jobset_of_trainjob()
CHAIN = (TRAINJOB, JOBSET, a_child_job(JOBSET, "node", 0))


class TestSweeps:
    """A sweep looks at what can still change."""

    def test_owners(self) -> None:
        """Roots only: not what another of them controls, not what has ended, no Job without a group label."""
        objects = (
            *CHAIN,
            a_jobset(modifiers=[named("alone")]),
            a_jobset(modifiers=[named("aside"), owned_by(TRAINJOB)]),
            a_job(named("plain"), label=None),
            a_job(named("done"), with_condition("Complete")),
            a_job(named("marked")),
            a_job(named("flux"), owned_by(an_object("flux/v1", "MiniCluster", "m", "m"))),
        )
        owners = [f"{owner.kind} {owner.name}" for owner in sweep.owners(CountingSnapshot(*objects))]
        assert owners == ["TrainJob llama", "JobSet alone", "JobSet aside", "Job marked", "Job flux"]

    def test_a_cluster_without_the_trainer(self) -> None:
        """A kind that is not served has no objects."""
        cluster = CountingSnapshot(a_job(), missing=("TrainJob", "JobSet"))
        assert [owner.kind for owner in sweep.owners(cluster)] == ["Job"]

    def test_orphans_come_after_the_owners(self) -> None:
        """Muster's objects whose owner is gone; a user's are not looked at."""
        left = a_workload(modifiers=[named("left"), labelled({"muster.dev/owner-uid": "gone"})])
        subjects = [
            subject.subject if isinstance(subject, OrphanInputs) else subject
            for subject in sweep.owners_and_orphans(
                CountingSnapshot(a_job(), left, a_workload(), a_users_workload(), a_pod_group())
            )
        ]
        assert [f"{reference.kind} {reference.name}" for reference in subjects] == [
            "Job llama",
            "Workload left",
        ]

    def test_little_is_kept_of_orphans(self) -> None:
        """All of them are kept until their turns, and a tenant decides how large they are."""
        large = [labelled({"muster.dev/owner-uid": "gone", "a": "a" * 63}), annotated({"a": "a" * 20_000})]
        cluster = CountingSnapshot(a_workload(modifiers=large), a_pod_group("left", *large))
        orphans = [found for found in sweep.owners_and_orphans(cluster) if isinstance(found, OrphanInputs)]
        assert len(orphans) == 2
        assert all(len(orphan.object.model_dump_json(exclude_unset=True)) < 500 for orphan in orphans)
        assert all(isinstance(plan_orphan(orphan), Plan) for orphan in orphans)

    @pytest.mark.parametrize(
        ("not_served", "removed"),
        [
            pytest.param((), ["Workload", "PodGroup", "PodGroup"], id="all kinds are served"),
            pytest.param(("TrainJob",), ["PodGroup"], id="a TrainJob may live"),
            pytest.param(("JobSet",), ["PodGroup"], id="a JobSet may live, and with it a TrainJob's groups"),
            pytest.param(("Job",), ["Workload", "PodGroup"], id="a Job may live"),
        ],
    )
    def test_objects_of_an_owner_whose_kind_is_not_served_are_kept(
        self, not_served: tuple[str, ...], removed: list[str]
    ) -> None:
        """An upgrade that no longer serves the version of a kind deletes nothing of its owners."""
        made = (a_workload(root=TRAINJOB), a_pod_group("llama-trainer-22222222", root=TRAINJOB))
        cluster = CountingSnapshot(*made, a_pod_group(), missing=not_served)
        subjects = sweep.owners_and_orphans(cluster)
        kinds = [observed.subject.kind for observed in subjects if isinstance(observed, OrphanInputs)]
        assert sorted(kinds) == sorted(removed)

    def test_objects_of_a_deleted_owner_whose_kind_is_not_served_are_removed(self) -> None:
        """An orphaning deletion takes the reference away."""
        left = a_pod_group("left", lambda group: group["metadata"].pop("ownerReferences"))
        subjects = sweep.owners_and_orphans(CountingSnapshot(left, missing=("Job",)))
        assert [observed.subject for observed in subjects if isinstance(observed, OrphanInputs)] == [
            ref(left)
        ]

    def test_gated_pods(self) -> None:
        """Each group that exists and has some, and each pod that has no schedulingGroup."""
        job, other, lost = a_job(pods=4), a_job(named("other"), of_uid("99999999-x")), a_job(named("lost"))
        objects = (
            a_pod_group(),
            *pods_of(job),
            a_pod(other, 0, bound),
            a_pod(other, 1, being_deleted),
            *pods_of(lost),
            *(
                a_pod(None, index, named(f"bare-{index}"), lambda pod: pod["spec"].pop("schedulingGroup"))
                for index in (0, 1)
            ),
        )
        subjects = [subject.name for subject in sweep.gated_pods(CountingSnapshot(*objects))]
        assert subjects == ["llama-main-33333333", "bare-0", "bare-1"]

    def test_an_orphan_comes_observed(self) -> None:
        """With the UIDs of everything that lives, from the lists."""
        left = a_workload(modifiers=[named("left"), labelled({"muster.dev/owner-uid": "gone"})])
        (orphan,) = (
            observed
            for observed in sweep.owners_and_orphans(CountingSnapshot(*CHAIN, left))
            if isinstance(observed, OrphanInputs)
        )
        assert orphan.subject == ref(left)
        assert {body["metadata"]["uid"] for body in CHAIN} <= orphan.live_uids

    def test_an_object_that_cannot_be_read_does_not_hide_the_others(self) -> None:
        """The step's own run reports what is wrong with it."""
        broken = a_job(named("broken"))
        broken["spec"]["parallelism"] = "many"
        owners = [owner.name for owner in sweep.owners(CountingSnapshot(broken, a_job()))]
        assert owners == ["broken", "llama"]
