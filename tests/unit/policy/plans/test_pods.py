"""patch_pods: the exact request that lifts a gate, and when it may be sent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.objects.resources import SchedulingApi
from muster.policy.model import Action, Plan, Reply, Verb
from muster.policy.plans.patch_pods import needs_owner
from muster.policy.reasons import Reason
from muster.policy.sources.source import ANNOTATION, PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    Object,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_pod,
    a_pod_group,
    a_replicated_job,
    a_users_workload,
    being_deleted,
    bound,
    gated,
    observed,
    placed,
    pods_of,
    ref,
    stamped,
    succeeded,
    unstamped,
    with_condition,
    with_spec,
    with_status,
)
from tests.support.lifting import Held, assert_ungated, ungated
from tests.support.messages import mentions, without_message
from tests.support.planning import Observed, plan_pods

GATE = "muster.dev/pod-group"
GROUP = "llama-main-33333333"


def lifted(*pods: Object) -> list[Action]:
    """The request for each pod, byte for byte as design section 3 has it."""
    return [
        Action(
            Verb.PATCH,
            ref(pod),
            {
                "metadata": {"uid": pod["metadata"]["uid"], "labels": {"muster.dev/gated": None}},
                "spec": {"schedulingGates": [{"$patch": "delete", "name": "muster.dev/pod-group"}]},
            },
            patch=PatchType.STRATEGIC,
        )
        for pod in pods
    ]


def test_lifting_gates() -> None:
    """All gates of a group at once, each by strategic merge with the pod's UID and no resourceVersion."""
    pods = pods_of(a_job())
    group = a_pod_group()
    plan = plan_pods(observed(groups=[group], pods=pods), NOW)
    assert without_message(plan) == Plan(
        Reason.GATES_LIFTED,
        "",
        tuple(lifted(*pods)),
        Reply("lifted", ref(a_job()), {"podGroup": "llama-main-33333333", "pods": 2}),
    )
    assert mentions(plan.message, 2, GROUP)


def of_a_former_job(pod: Object) -> None:
    """Let a pod be of a Job that its JobSet has made anew since."""
    pod["metadata"]["ownerReferences"][0]["uid"] = "of-the-former-one"


JOB = a_job(pods=3)
BEFORE = a_pod_group(min_count=3)
AFTER = a_pod_group("llama-main-33333333", placed, min_count=3)
LOWERED = a_pod_group("llama-main-33333333", placed, min_count=2)


class TestBeforeTheGroupWasPlaced:
    """Gates are lifted as soon as the group exists."""

    def test_one_pod_is_enough(self) -> None:
        """The scheduler counts to minCount itself."""
        assert ungated(observed(JOB, groups=[BEFORE], pods=[a_pod(JOB, 1)])) == ["llama-1"]

    def test_minCount_need_not_be_right(self) -> None:  # noqa: N802 - the field's own spelling
        """A stale minCount is resize_gang's business."""
        assert ungated(observed(JOB, groups=[a_pod_group()], pods=[a_pod(JOB, 1)])) == ["llama-1"]

    @pytest.mark.parametrize(
        ("pod", "names"),
        [
            pytest.param(
                a_pod(JOB, 0, gated("kueue.x-k8s.io/topology", GATE)), ["llama-0"], id="beside Kueue's gate"
            ),
            pytest.param(a_pod(JOB, 0, gated("kueue.x-k8s.io/topology")), [], id="other people's gates stay"),
            pytest.param(a_pod(JOB, 0, gated()), [], id="a pod without gates"),
            pytest.param(a_pod(JOB, 0, being_deleted), [], id="a pod on its way out"),
            pytest.param(a_pod(JOB, 0, with_status(phase="Failed")), [], id="a pod that ended while gated"),
            pytest.param(a_pod(JOB, 0, stamped("other")), [], id="a pod of another group"),
        ],
    )
    def test_only_musters_gate_on_live_pods_of_the_group_is_removed(
        self, pod: Object, names: list[str]
    ) -> None:
        """Only Muster's gate, only of live pods, only of this group."""
        given = observed(JOB, groups=[BEFORE], pods=[pod])
        assert_ungated(given, names or Held(Reason.UP_TO_DATE, ("team-a/llama",)))

    def test_a_group_being_deleted_still_places_pods(self) -> None:
        """Its finalizer holds it until the last pod ends."""
        assert ungated(
            observed(JOB, groups=[a_pod_group("llama-main-33333333", being_deleted)], pods=[a_pod(JOB)])
        )


class TestAfterTheGroupWasPlaced:
    """New pods of a gang are let go only together: the scheduler itself no longer sees to that."""

    @pytest.mark.parametrize(
        ("job", "group", "pods", "decision"),
        [
            pytest.param(
                JOB,
                AFTER,
                pods_of(JOB),
                ["llama-0", "llama-1", "llama-2"],
                id="a restart, all members are here",
            ),
            pytest.param(
                JOB,
                AFTER,
                pods_of(JOB)[:2],
                Held(Reason.AWAITING_MEMBERS, (GROUP, 2, 3)),
                id="a restart, one member is still missing",
            ),
            pytest.param(
                JOB,
                AFTER,
                [*pods_of(JOB)[:2], a_pod(JOB, 2, bound, being_deleted)],
                Held(Reason.AWAITING_MEMBERS, (GROUP, 2, 3)),
                id="a terminating member is no member, though the scheduler counts it",
            ),
            pytest.param(
                JOB,
                AFTER,
                [*pods_of(JOB)[:2], a_pod(JOB, 2, succeeded, of_a_former_job)],
                Held(Reason.AWAITING_MEMBERS, (GROUP, 2, 3)),
                id="a member of the last attempt that has ended is none either",
            ),
            pytest.param(
                JOB,
                AFTER,
                [*pods_of(JOB)[:2], a_pod(JOB, 2, succeeded)],
                Held(Reason.AWAITING_RESIZE, (GROUP, 3, 2)),
                id="one of this attempt is done, before its Job says so",
            ),
            pytest.param(
                JOB,
                LOWERED,
                pods_of(JOB),
                Held(Reason.AWAITING_RESIZE, (GROUP, 2, 3)),
                id="a restart after minCount was lowered",
            ),
            pytest.param(
                JOB,
                AFTER,
                [a_pod(JOB, 0, bound), a_pod(JOB, 1, bound), a_pod(JOB, 2)],
                ["llama-2"],
                id="the replacement of a running member",
            ),
            pytest.param(
                a_job(with_status(completedIndexes="0"), pods=3),
                AFTER,
                [a_pod(JOB, 1), a_pod(JOB, 2)],
                Held(Reason.AWAITING_RESIZE, (GROUP, 3, 2)),
                id="a replacement after others finished waits for the lower minCount",
            ),
            pytest.param(
                a_job(with_status(completedIndexes="0"), pods=3),
                LOWERED,
                [a_pod(JOB, 0, succeeded), a_pod(JOB, 1, bound), a_pod(JOB, 2)],
                ["llama-2"],
                id="and goes once that is there",
            ),
            pytest.param(
                a_job(pods=6),
                AFTER,
                [*(a_pod(JOB, index, bound) for index in range(3)), a_pod(JOB, 3), a_pod(JOB, 4)],
                ["llama-3", "llama-4"],
                id="growth goes at once, minCount follows when it is bound",
            ),
            pytest.param(
                a_job(pods=6),
                AFTER,
                [*(a_pod(JOB, index, bound) for index in range(2)), a_pod(JOB, 2), a_pod(JOB, 5)],
                ["llama-2", "llama-5"],
                id="a replacement does not wait for growth beyond the room there is",
            ),
            pytest.param(
                JOB,
                a_pod_group("llama-main-33333333", placed, min_count=None),
                [a_pod(JOB, 0)],
                ["llama-0"],
                id="a basic group has nothing to wait for",
            ),
            pytest.param(
                a_job(with_condition("Failed"), pods=3),
                AFTER,
                [a_pod(JOB, 0)],
                ["llama-0"],
                id="it is not resized any more",
            ),
        ],
    )
    def test_min_count_and_members_decide(
        self,
        job: Object,
        group: Object,
        pods: list[Object],
        decision: list[str] | Held,
    ) -> None:
        """MinCount must be what the Jobs need, and that many members must be there."""
        assert_ungated(observed(job, groups=[group], pods=pods), decision)

    @pytest.mark.parametrize(
        ("given", "decision"),
        [
            pytest.param(
                observed(JOB, others=[a_users_workload()], groups=[LOWERED], pods=pods_of(JOB)[:1]),
                Held(Reason.AWAITING_MEMBERS, (GROUP, 1, 2)),
                id="the user's own minCount: only its members are waited for",
            ),
            pytest.param(
                observed(JOB, others=[a_users_workload()], groups=[LOWERED], pods=pods_of(JOB)),
                ["llama-0", "llama-1", "llama-2"],
                id="the user's own minCount is never resized",
            ),
            pytest.param(
                observed(
                    JOB, groups=[LOWERED], pods=pods_of(JOB), scheduling=SchedulingApi("v1alpha2", False)
                ),
                ["llama-0", "llama-1", "llama-2"],
                id="Kubernetes 1.36 cannot resize",
            ),
            pytest.param(
                observed(
                    JOB,
                    groups=[LOWERED],
                    pods=pods_of(JOB),
                    sources=(
                        PolicySource(PolicySourceKind.OWNER, ANNOTATION, "{workload: {onScale: Flag}}"),
                    ),
                ),
                ["llama-0", "llama-1", "llama-2"],
                id="the policy says Flag",
            ),
            pytest.param(
                observed(
                    JOB,
                    others=[a_users_workload(a_gang("x", 1), a_gang("y", 1))],
                    groups=[LOWERED],
                    pods=pods_of(JOB)[:1],
                ),
                ["llama-0"],
                id="a grouping failure: the group is not resized",
            ),
        ],
    )
    def test_where_minCount_does_not_follow(  # noqa: N802 - the field's own spelling
        self, given: Observed, decision: list[str] | Held
    ) -> None:
        """No pod waits for a resize that never comes."""
        assert_ungated(given, decision)

    def test_pods_of_other_groups_stay_gated(self) -> None:
        """For this rule all pods of the owner are read; only those of the one group are let go."""
        jobset = a_jobset(a_replicated_job("a"), a_replicated_job("b"))
        jobs = [a_child_job(jobset, name, 0) for name in ("a", "b")]
        group = a_pod_group("llama-a-22222222", placed, root=jobset)
        pods = [*pods_of(jobs[0]), *pods_of(jobs[1])]
        assert ungated(observed(jobset, jobs=jobs, groups=[group], pods=pods)) == [
            "llama-a-0-0",
            "llama-a-0-1",
        ]


class TestWithoutAGroup:
    """What a gated pod waits for, and when it must not wait at all."""

    def test_a_group_that_is_still_to_come(self) -> None:
        """Its own event continues."""
        waiting = Held(Reason.AWAITING_POD_GROUP, ("llama-main-33333333",))
        assert_ungated(observed(pods=[a_pod()]), waiting)

    @pytest.mark.parametrize(
        "given",
        [
            pytest.param(
                observed(pods=[a_pod(None, 0, unstamped, gated(GATE))]),
                id="the API server dropped the schedulingGroup at the pod's birth",
            ),
            pytest.param(
                observed(pods=[a_pod()], scheduling=SchedulingApi("", False)), id="there are no PodGroups"
            ),
        ],
    )
    def test_the_scheduling_api_is_off(self, given: Observed) -> None:
        """The Job runs as a plain Job."""
        plan = plan_pods(given, NOW)
        assert isinstance(plan, Plan)
        assert (plan.reason, list(plan.actions)) == (Reason.API_NOT_SERVED, lifted(a_pod()))

    def test_beside_pods_of_a_group(self) -> None:
        """An event about the group lets both go: those of the group do not wait for the next sweep."""
        plan = plan_pods(
            observed(JOB, groups=[BEFORE], pods=[a_pod(JOB, 0), a_pod(JOB, 1, unstamped, gated(GATE))]), NOW
        )
        assert isinstance(plan, Plan)
        assert {action.target.name for action in plan.actions} == {"llama-0", "llama-1"}
        assert plan.reason == Reason.API_NOT_SERVED
        assert mentions(plan.message, GROUP)
        assert plan.reply is not None

    def test_beside_pods_of_a_group_that_wait(self) -> None:
        """Those of the group keep their gates."""
        given = observed(JOB, groups=[AFTER], pods=[a_pod(JOB, 0), a_pod(JOB, 1, unstamped, gated(GATE))])
        plan = plan_pods(given, NOW)
        assert isinstance(plan, Plan)
        assert list(plan.actions) == lifted(a_pod(JOB, 1))

    def test_a_pod_that_is_gone(self) -> None:
        """Neither pod nor group could be read."""
        subject = ObjectRef("v1", "Pod", "team-a", "llama-0", "old")
        assert_ungated(Observed(subject), Held(Reason.OBJECT_GONE, ("team-a/llama-0",)))


def test_a_group_without_owner_has_no_reply() -> None:
    """A PodGroup that a person made for labelled pods: gates are lifted, no owner gets a condition."""
    group = a_pod_group()
    del group["metadata"]["ownerReferences"]
    plan = plan_pods(observed(groups=[group], pods=[a_pod()]), NOW)
    assert isinstance(plan, Plan)
    assert (len(plan.actions), plan.reply) == (1, None)


@pytest.mark.parametrize(
    ("group", "pod", "needed"),
    [
        pytest.param(AFTER, a_pod(), True, id="a held pod of a gang that was placed before"),
        pytest.param(BEFORE, a_pod(), False, id="not before the first placement"),
        pytest.param(AFTER, a_pod(None, 0, bound), False, id="not when no pod is held"),
        pytest.param(
            a_pod_group("llama-main-33333333", placed, min_count=None),
            a_pod(),
            False,
            id="not for a basic group",
        ),
    ],
)
def test_when_the_owner_is_read(group: Object, pod: Object, needed: bool) -> None:
    """Most gates are lifted without reading the owner."""
    given = observed(groups=[group], pods=[pod])
    assert needs_owner(given.groups[0], given.pods) == needed


def test_a_group_without_its_owner_does_not_wait_for_a_resize() -> None:
    """A group whose owner is gone is not resized."""
    given = replace(observed(JOB, groups=[LOWERED], pods=[a_pod(JOB)]), owner=None, jobs=())
    assert ungated(given) == ["llama-0"]


def test_suspension_makes_no_difference() -> None:
    """Resuming makes new pods of the same group."""
    job = a_job(with_spec(suspend=True), pods=3)
    assert ungated(observed(job, groups=[AFTER], pods=pods_of(job))) == ["llama-0", "llama-1", "llama-2"]
