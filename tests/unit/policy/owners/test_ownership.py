"""Which owners Muster does not group and why, and whose Workload is used for the others."""

from __future__ import annotations

import pytest

from muster.objects.meta import ObjectRef
from muster.policy import group_labels
from muster.policy.model import NoOp
from muster.policy.owners import known_kind_of, workload_name
from muster.policy.owners.kind import OwnerObject
from muster.policy.owners.trainjob import TrainJob
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from tests.support.builders import (
    Object,
    a_basic,
    a_gang,
    a_job,
    a_jobset,
    a_jobset_of_trainjob,
    a_namespace,
    a_replicated_job,
    a_trainjob,
    a_users_workload,
    a_workload,
    an_object,
    annotated,
    being_deleted,
    labelled,
    named,
    observed,
    of_uid,
    owned_by,
    ref,
    template_annotated,
    template_labelled,
    template_spec,
    with_condition,
    with_spec,
)
from tests.support.messages import mentions
from tests.support.planning import Observed, resolve

MULTIKUEUE = with_spec(managedBy="kueue.x-k8s.io/multikueue")
UPSTREAM = annotated({group_labels.UPSTREAM_TEMPLATE: "trainer"})
CRON_JOB = an_object("batch/v1", "CronJob", "nightly", "cron-uid")
MINI_CLUSTER = an_object("flux-framework.org/v1alpha2", "MiniCluster", "flux", "flux-uid")
SUBJECT = ObjectRef("batch/v1", "Job", "team-a", "llama", "an-older-uid")


def skipped(given: Observed) -> NoOp:
    """The decision on an owner that must be skipped."""
    decision = resolve(given)
    assert isinstance(decision, NoOp)
    return decision


@pytest.mark.parametrize(
    ("given", "reason", "facts"),
    [
        pytest.param(
            Observed(SUBJECT),
            Reason.OBJECT_GONE,
            ("Job", "team-a/llama"),
            id="it is gone",
        ),
        pytest.param(
            observed(a_job(being_deleted)),
            Reason.DELETED,
            ("Job", "team-a/llama"),
            id="it is being deleted",
        ),
        pytest.param(
            observed(a_job(named("j" * 64))),
            Reason.NAME_TOO_LONG,
            ("Job", "j" * 64),
            id="its pods cannot have its name as a label",
        ),
        pytest.param(
            observed(a_job(), namespace=a_namespace(being_deleted)),
            Reason.DELETED,
            ("Job", "team-a/llama"),
            id="its namespace is being deleted",
        ),
        pytest.param(
            observed(a_trainjob(), jobset=a_jobset_of_trainjob(modifiers=[being_deleted])),
            Reason.DELETED,
            ("JobSet", "team-a/llama"),
            id="the JobSet of a TrainJob is being rebuilt",
        ),
        *(
            pytest.param(observed(body), Reason.FINISHED, (kind, "team-a/llama"), id=f"the {kind} is {state}")
            for kind, state, body in (
                ("Job", "complete", a_job(with_condition("Complete"))),
                ("Job", "failed", a_job(with_condition("Failed"))),
                ("JobSet", "completed", a_jobset(modifiers=[with_condition("Completed")])),
                ("JobSet", "failed", a_jobset(modifiers=[with_condition("Failed")])),
                ("TrainJob", "complete", a_trainjob(with_condition("Complete"))),
                ("TrainJob", "failed", a_trainjob(with_condition("Failed"))),
            )
        ),
        *(
            pytest.param(
                given,
                Reason.MANAGED_ELSEWHERE,
                (kind, "team-a/llama", "spec.managedBy", "kueue.x-k8s.io/multikueue"),
                id=f"MultiKueue manages the {what}",
            )
            for kind, what, given in (
                ("Job", "Job", observed(a_job(MULTIKUEUE))),
                ("JobSet", "JobSet", observed(a_jobset(modifiers=[MULTIKUEUE]))),
                ("TrainJob", "TrainJob", observed(a_trainjob(MULTIKUEUE))),
                (
                    "JobSet",
                    "JobSet of a TrainJob",
                    observed(a_trainjob(), jobset=a_jobset_of_trainjob(modifiers=[MULTIKUEUE])),
                ),
            )
        ),
        pytest.param(
            observed(a_trainjob()),
            Reason.AWAITING_JOBSET,
            ("TrainJob", "team-a/llama"),
            id="a TrainJob has no JobSet yet",
        ),
        *(
            pytest.param(observed(body), Reason.UPSTREAM_GROUPS, facts, id=f"upstream groups it: {how}")
            for how, body, facts in (
                (
                    "spec.scheduling of a Job",
                    a_job(with_spec(scheduling={})),
                    ("Job", "team-a/llama", "spec.scheduling"),
                ),
                (
                    "spec.scheduling of a JobSet",
                    a_jobset(modifiers=[with_spec(scheduling={"schedulingPolicy": {"gang": {}}})]),
                    ("JobSet", "team-a/llama", "spec.scheduling"),
                ),
                (
                    "the annotation on a JobSet",
                    a_jobset(modifiers=[UPSTREAM]),
                    ("JobSet", "team-a/llama", group_labels.UPSTREAM_TEMPLATE),
                ),
                (
                    "the annotation on all Jobs of a JobSet",
                    a_jobset(a_replicated_job("a", UPSTREAM)),
                    ("JobSet", "team-a/llama"),
                ),
            )
        ),
        *(
            pytest.param(
                observed(a_job(modifier, label=label)),
                reason,
                ("Job", "team-a/llama"),
                id=sentence,
            )
            for sentence, modifier, label, reason in (
                (
                    "its pods name a group of the user's own",
                    template_spec(schedulingGroup={"podGroupName": "x"}),
                    "m",
                    Reason.BRING_YOUR_OWN_GROUP,
                ),
                (
                    "KAI schedules it",
                    template_spec(schedulerName="kai-scheduler"),
                    "m",
                    Reason.OTHER_SCHEDULER,
                ),
                ("Volcano schedules it", template_spec(schedulerName="volcano"), "m", Reason.OTHER_SCHEDULER),
                (
                    "coscheduling groups it",
                    template_labelled({"scheduling.x-k8s.io/pod-group": "x"}),
                    "m",
                    Reason.OTHER_SCHEDULER,
                ),
                (
                    "Volcano groups it",
                    template_annotated({"scheduling.k8s.io/group-name": "x"}),
                    "m",
                    Reason.OTHER_SCHEDULER,
                ),
                (
                    "its pods have eviction responders",
                    template_spec(evictionResponders=[{"name": "x"}]),
                    "m",
                    Reason.EVICTION_RESPONDERS,
                ),
                ("its pods name their node", template_spec(nodeName="node-1"), "m", Reason.NODE_NAMED),
                (
                    "its pods have a system priority",
                    template_spec(priorityClassName="system-node-critical"),
                    "m",
                    Reason.PRIORITY_TOO_HIGH,
                ),
                ("it opted out", with_spec(), "none", Reason.OPTED_OUT),
                ("nothing marks it", with_spec(), None, Reason.NOT_MARKED),
                ("its mark is no DNS label", with_spec(), "Main", Reason.NOT_MARKED),
            )
        ),
        pytest.param(
            observed(a_job(owned_by(CRON_JOB), label=None)),
            Reason.OWNED_BY_ANOTHER,
            ("Job", "team-a/llama", "CronJob", "nightly"),
            id="a CronJob's Job is labelled by hand or not at all",
        ),
    ],
)
def test_left_alone(given: Observed, reason: Reason, facts: tuple[str, ...]) -> None:
    """An owner that is not Muster's to group is skipped, and the reason is named."""
    decision = skipped(given)
    assert decision.reason == reason
    assert mentions(decision.message, *facts)


def test_the_strongest_of_several_reasons_is_reported() -> None:
    """A template that another controller groups comes before one without a group label."""
    jobset = a_jobset(
        a_replicated_job("a", label="none"), a_replicated_job("b", template_spec(schedulerName="volcano"))
    )
    assert skipped(observed(jobset)).reason == Reason.OTHER_SCHEDULER
    opted_out = a_jobset(a_replicated_job("a", label="none"), a_replicated_job("b", label="No"))
    assert skipped(observed(opted_out)).reason == Reason.OPTED_OUT


def _resolved(given: Observed) -> ResolvedOwner:
    resolved = resolve(given)
    assert isinstance(resolved, ResolvedOwner)
    return resolved


@pytest.mark.parametrize(
    ("given", "root", "named_by"),
    [
        pytest.param(observed(a_job()), "Job", "Job", id="a Job owns its groups and names them"),
        pytest.param(observed(a_jobset()), "JobSet", "JobSet", id="so does a JobSet"),
        pytest.param(
            observed(a_trainjob(), jobset=a_jobset_of_trainjob()),
            "TrainJob",
            "JobSet",
            id="a TrainJob owns what its JobSet names",
        ),
        pytest.param(
            observed(a_job(owned_by(MINI_CLUSTER))),
            "Job",
            "Job",
            id="a Job labelled by hand under any controller",
        ),
        pytest.param(
            observed(a_jobset(modifiers=[owned_by(MINI_CLUSTER)])),
            "JobSet",
            "JobSet",
            id="a JobSet under a controller unknown to us",
        ),
        pytest.param(
            observed(a_trainjob(with_spec(suspend=True)), jobset=a_jobset_of_trainjob()),
            "TrainJob",
            "JobSet",
            id="suspension is not looked at",
        ),
    ],
)
def test_owners(given: Observed, root: str, named_by: str) -> None:
    """The root owner owns what Muster makes; the JobSet or Job gives the names."""
    resolved = _resolved(given)
    assert (resolved.root.kind, resolved.pod_sets.named_by.kind, resolved.failure) == (
        root,
        named_by,
        None,
    )


def _view(owner: Object) -> OwnerObject:
    """The owner as the plans see it."""
    return known_kind_of(ref(owner)).view.read(owner)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(a_job(), "llama-86f65b7bb7", id="a Job's Workload is the one its controller would make"),
        pytest.param(a_jobset(), "llama", id="a JobSet's has its name"),
        pytest.param(a_trainjob(), "llama", id="a TrainJob's has its name"),
    ],
)
def test_workload_name(owner: Object, name: str) -> None:
    """The Workload of an owner has a fixed name."""
    assert workload_name(_view(owner)) == name


class TestWorkloadOfTheUsersOwn:
    """A Workload whose controllerRef names the owner and that lacks our labels rules."""

    def test_it_is_used_under_any_name(self) -> None:
        """It is found by its controllerRef."""
        resolved = _resolved(observed(others=[a_users_workload(a_basic("main"))]))
        assert (resolved.own and resolved.own.metadata.name, resolved.failure) == ("mine", None)

    def test_it_may_have_the_name_that_muster_would_give(self) -> None:
        """A person may know the recipe."""
        own = a_users_workload(name="llama-86f65b7bb7")
        assert _resolved(observed(workload=own, others=[own])).own is not None

    @pytest.mark.parametrize(
        "reference",
        [
            pytest.param({"apiGroup": "batch", "kind": "Job", "name": "other"}, id="another name"),
            pytest.param({"apiGroup": "batch", "kind": "CronJob", "name": "llama"}, id="another kind"),
            pytest.param(
                {"apiGroup": "batch.volcano.sh", "kind": "Job", "name": "llama"}, id="another group"
            ),
        ],
    )
    def test_of_another_owner_it_says_nothing(self, reference: Object) -> None:
        """All three parts of the controllerRef count."""
        own = a_users_workload()
        own["spec"]["controllerRef"] = reference
        assert _resolved(observed(others=[own])).own is None

    def test_two_own_workloads_are_a_grouping_failure(self) -> None:
        """It is not clear which one to use, so none is."""
        resolved = _resolved(observed(others=[a_users_workload(), a_users_workload(name="also")]))
        assert resolved.own is None
        assert resolved.failure is not None
        assert resolved.failure.reason == Reason.TWO_WORKLOADS
        assert mentions(resolved.failure.message, "also", "mine", "llama")

    def test_of_many_own_workloads_one_is_named(self) -> None:
        """Each of up to 512 fallback PodGroups repeats the message."""
        own = [a_users_workload(name=f"{number:0250}") for number in range(1000)]
        failure = _resolved(observed(others=own)).failure
        assert failure is not None
        assert mentions(failure.message, f"{0:0250}", "999 others")
        assert len(failure.message) < 400

    def test_it_must_have_a_template_for_every_group_label(self) -> None:
        """Pods stamped for a group that it lacks would wait for ever."""
        resolved = _resolved(observed(others=[a_users_workload(a_gang("other", 2), a_basic("x"))]))
        assert resolved.failure is not None
        assert resolved.failure.reason == Reason.WORKLOAD_DOES_NOT_FIT
        assert mentions(resolved.failure.message, "mine", "main")

    def test_it_may_have_more_templates(self) -> None:
        """A template without pods has no effect."""
        assert _resolved(observed(others=[a_users_workload(a_gang("main", 2), a_basic("x"))])).failure is None

    @pytest.mark.parametrize("label", [group_labels.MANAGED_BY, group_labels.OWNER_UID])
    def test_one_label_of_musters_does_not_make_it_musters(self, label: str) -> None:
        """The API server would refuse its deletion, and the gang keep its gates for good."""
        labels = {label: group_labels.owner_labels(ref(a_job()))[label]}
        own = a_users_workload()
        labelled(labels)(own)
        assert _resolved(observed(workload=own)).own is not None

    def test_musters_own_is_not_the_users(self) -> None:
        """Muster's labels distinguish them."""
        assert _resolved(observed(workload=a_workload())).own is None


class TestWorkloadOfTheJobController:
    """With the gate WorkloadWithJob the Job controller makes one Workload for each plain Job."""

    THEIRS = a_users_workload(a_basic("llama-pgt-0"), name="llama-86f65b7bb7")
    LEFTOVER = a_users_workload(a_basic("llama-pgt-0"), name="llama-785fd98b5c")

    def test_muster_leaves_it_alone(self) -> None:
        """Name and template are the Job controller's."""
        decision = skipped(observed(workload=self.THEIRS, others=[self.THEIRS]))
        assert decision.reason == Reason.UPSTREAM_GROUPS
        assert mentions(decision.message, "llama-86f65b7bb7")

    def test_also_beside_a_users_own_workload(self) -> None:
        """The Job controller ignores a user's Workload, and groups the pods all the same."""
        given = observed(workload=self.THEIRS, others=[a_users_workload(), self.THEIRS])
        assert skipped(given).reason == Reason.UPSTREAM_GROUPS

    def test_a_workload_left_by_an_earlier_job_is_ignored(self) -> None:
        """An orphaning delete leaves it behind under a name with the hash of another UID."""
        resolved = _resolved(observed(others=[self.LEFTOVER]))
        assert (resolved.own, resolved.failure) == (None, None)


def test_a_job_of_another_uid_is_another_job() -> None:
    """UIDs make names: the same Job made anew gets a Workload of its own."""
    rebuilt = a_job(of_uid("an-other-uid"))
    assert workload_name(_view(rebuilt)) != workload_name(_view(a_job()))
    pi = a_job(named("pi"), of_uid("00000000-0000-0000-0000-000000000000"))
    assert workload_name(_view(pi)) == "pi-587798f5c5"


def test_a_view_of_a_trainjob_knows_its_default_manager() -> None:
    """A TrainJob without managedBy is the Trainer's."""
    assert TrainJob.read(a_trainjob()).spec.managed_by == "trainer.kubeflow.org/trainjob-controller"
