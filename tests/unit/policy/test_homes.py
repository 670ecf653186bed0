"""Which policy rules: the first home from the top, broken or not."""

from __future__ import annotations

import pytest

from muster.objects.jobs import JobSet, TrainJob
from muster.objects.scheduling import Workload
from muster.policy import homes
from muster.policy.homes import ANNOTATION, DEFAULT, Broken, Ruling
from muster.policy.model import Home, HomeKind, Owner
from muster.policy.reasons import Reason
from tests.conftest import Wording
from tests.support.builders import a_jobset, a_trainjob, a_workload, annotated, with_spec
from tests.support.messages import mentions

FLAG = "workload: {onScale: Flag}"


def a_home(kind: HomeKind, content: str) -> Home:
    """A home called by its kind."""
    return Home(kind, f"the {kind}", content)


def test_without_a_home_the_default_rules() -> None:
    """Every mark is a group, sizes follow, failures run as basic groups."""
    assert homes.rule(()) == DEFAULT
    assert not DEFAULT.holds


def test_the_first_home_rules() -> None:
    """Lower homes are not looked at."""
    ruling = homes.rule((a_home(HomeKind.OWNER, FLAG), a_home(HomeKind.NAMESPACE, "workload: {}")))
    assert isinstance(ruling, Ruling)
    assert ruling.workload is not None
    assert (ruling.where, ruling.workload.on_scale) == ("the owner", "Flag")


def test_a_broken_home_never_falls_through(wording: Wording) -> None:
    """The namespace's policy is fine; the owner's is not, and it is the owner's that counts."""
    ruling = homes.rule(
        (a_home(HomeKind.OWNER, "workload: {onScal: Flag}"), a_home(HomeKind.NAMESPACE, FLAG))
    )
    assert isinstance(ruling, Broken)
    assert ruling.why.reason == Reason.INVALID_POLICY
    assert mentions(ruling.why.message, "the owner", "workload.onScal")
    wording(ruling.why.message)
    assert not ruling.ruling.holds


def test_a_broken_policy_that_says_hold_holds() -> None:
    """Its pods stay gated instead of running without the gang that somebody insists on."""
    ruling = homes.rule((a_home(HomeKind.OWNER, "workload: {onFailure: Hold, groups: 3}"),))
    assert isinstance(ruling, Broken)
    assert ruling.ruling.holds


@pytest.mark.parametrize("kind", [HomeKind.RUNTIME, HomeKind.RUNTIME_SPEC])
def test_a_runtime_may_hand_its_pods_to_kai(kind: HomeKind) -> None:
    """There mark_runtime writes queue and schedulerName before any pod exists."""
    ruling = homes.rule((a_home(kind, "kaiScheduler: {queue: team-a}"),))
    assert ruling == Ruling(f"the {kind}", None, "kaiScheduler", "team-a")


A_TRAINJOB = TrainJob.read(a_trainjob())
IN_NAMESPACE = TrainJob.read(a_trainjob(with_spec(runtimeRef={"name": "mine", "kind": "TrainingRuntime"})))
A_JOBSET = JobSet.read(a_jobset())


@pytest.mark.parametrize(
    ("kind", "content", "owner", "facts"),
    [
        pytest.param(
            HomeKind.OWNER,
            "kaiScheduler: {queue: team-a}",
            A_TRAINJOB,
            (
                "kaiScheduler",
                (
                    "kubectl annotate --overwrite clustertrainingruntime torch-distributed "
                    f"'{ANNOTATION}={{kaiScheduler: {{queue: team-a}}}}'"
                ),
            ),
            id="KAI on a TrainJob: the command names its runtime",
        ),
        pytest.param(
            HomeKind.NAMESPACE,
            "kaiScheduler: {}",
            IN_NAMESPACE,
            (
                "kaiScheduler",
                (
                    "kubectl annotate --overwrite trainingruntime mine -n team-a "
                    f"'{ANNOTATION}={{kaiScheduler: {{}}}}'"
                ),
            ),
            id="KAI in a namespace: the command names the runtime's namespace",
        ),
        pytest.param(
            HomeKind.OWNER,
            "kaiScheduler: {queue: q}",
            A_JOBSET,
            ("kaiScheduler", "schedulerName", "kai-scheduler", "kai.scheduler/queue", "q"),
            id="KAI on a JobSet, which has no runtime",
        ),
        pytest.param(
            HomeKind.RUNTIME,
            "volcano: {}",
            A_TRAINJOB,
            (
                "volcano",
                (
                    "kubectl patch clustertrainingruntime torch-distributed --type merge "
                    '-p \'{"spec": {"podGroupPolicy": {"volcano": {}}}}\''
                ),
            ),
            id="volcano in an annotation, which the Trainer does not read",
        ),
    ],
)
def test_another_scheduler_elsewhere_is_invalid_and_the_message_has_the_command(
    kind: HomeKind, content: str, owner: Owner, facts: tuple[str, ...], wording: Wording
) -> None:
    """A label on a job that runs already comes too late; the command that works is in the message."""
    ruling = homes.rule((a_home(kind, content),), owner)
    assert isinstance(ruling, Broken)
    assert ruling.why.reason == Reason.INVALID_POLICY
    assert mentions(ruling.why.message, f"the {kind}", *facts)
    wording(ruling.why.message)


@pytest.mark.parametrize("other", ["coscheduling", "volcano"])
def test_what_the_trainer_does_itself_is_left_to_it(other: str) -> None:
    """spec.podGroupPolicy of a runtime is the Trainer's own field."""
    ruling = homes.rule((Home(HomeKind.RUNTIME_SPEC, "spec", {other: {"scheduleTimeoutSeconds": 60}}),))
    assert ruling == Ruling("spec", None, other)


def test_a_workload_says_which_policy_it_was_made_under() -> None:
    """What is written into it comes back as the policy that rules, whatever became of its home since."""
    text = "workload: {groups: [{name: a, schedulingPolicy: {gang: {minCount: 1}}}], onScale: Flag}"
    ruling = homes.rule((a_home(HomeKind.NAMESPACE, text),))
    assert isinstance(ruling, Ruling)
    stored = Workload.read(a_workload(modifiers=(annotated(homes.annotations_of(ruling)),)))
    again = homes.rule(homes.stored(stored))
    assert isinstance(again, Ruling)
    assert (again.where, again.workload, again.kept) == ("the namespace", ruling.workload, True)


def test_a_workload_made_under_the_default_says_nothing() -> None:
    """And is ruled by the default for ever."""
    assert homes.annotations_of(DEFAULT) == {}
    assert homes.stored(Workload.read(a_workload())) == ()


def test_the_annotation_of_a_runtime_comes_before_its_spec() -> None:
    """Both may be there; an empty podGroupPolicy, which an older CRD leaves behind, is none."""
    runtime = {
        "kind": "TrainingRuntime",
        "metadata": {"name": "mine", "annotations": {ANNOTATION: FLAG}},
        "spec": {"podGroupPolicy": {"volcano": {}}},
    }
    assert [home.kind for home in homes.of_runtime(runtime)] == [HomeKind.RUNTIME, HomeKind.RUNTIME_SPEC]
    assert homes.of_runtime({"spec": {"podGroupPolicy": {}}}) == ()
    assert homes.of_runtime({}) == ()
