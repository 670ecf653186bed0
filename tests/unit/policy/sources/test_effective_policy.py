"""The effective policy is that of the highest policy source, whether it is valid or not."""

from __future__ import annotations

import pytest

from muster.objects.scheduling import Workload
from muster.policy.owners.jobset import JobSet
from muster.policy.owners.kind import OwnerObject
from muster.policy.owners.trainjob import TrainJob
from muster.policy.reasons import Reason
from muster.policy.sources import source as sources
from muster.policy.sources.source import (
    ANNOTATION,
    DEFAULT,
    EffectivePolicy,
    InvalidPolicy,
    PolicySource,
    PolicySourceKind,
)
from tests.support.builders import a_jobset, a_trainjob, a_workload, annotated, with_spec
from tests.support.messages import mentions

FLAG = "workload: {onScale: Flag}"


def a_source(kind: PolicySourceKind, content: str) -> PolicySource:
    """A policy source named by its kind."""
    return PolicySource(kind, f"the {kind}", content)


def test_without_a_source_the_default_policy_applies() -> None:
    """Every group label is a group, sizes follow, failures run as basic groups."""
    assert sources.resolve_policy(()) == DEFAULT
    assert not DEFAULT.holds


def test_the_highest_source_is_effective() -> None:
    """Lower policy sources are not read."""
    policy = sources.resolve_policy(
        (a_source(PolicySourceKind.OWNER, FLAG), a_source(PolicySourceKind.NAMESPACE, "workload: {}"))
    )
    assert isinstance(policy, EffectivePolicy)
    assert policy.workload is not None
    assert (policy.where, policy.workload.on_scale) == ("the owner", "Flag")


def test_an_invalid_policy_hides_those_below() -> None:
    """The namespace's policy is fine; the owner's is not, and it is the owner's that counts."""
    policy = sources.resolve_policy(
        (
            a_source(PolicySourceKind.OWNER, "workload: {onScal: Flag}"),
            a_source(PolicySourceKind.NAMESPACE, FLAG),
        )
    )
    assert isinstance(policy, InvalidPolicy)
    assert policy.failure.reason == Reason.INVALID_POLICY
    assert mentions(policy.failure.message, "the owner", "workload.onScal")
    assert not policy.policy.holds


def test_an_invalid_policy_with_hold_holds_the_pods() -> None:
    """Its pods stay gated instead of running without the gang that a user insists on."""
    policy = sources.resolve_policy(
        (a_source(PolicySourceKind.OWNER, "workload: {onFailure: Hold, groups: 3}"),)
    )
    assert isinstance(policy, InvalidPolicy)
    assert policy.policy.holds


@pytest.mark.parametrize("kind", [PolicySourceKind.RUNTIME, PolicySourceKind.RUNTIME_SPEC])
def test_a_runtime_may_hand_its_pods_to_kai(kind: PolicySourceKind) -> None:
    """There mark_runtime writes queue and schedulerName before any pod exists."""
    policy = sources.resolve_policy((a_source(kind, "kaiScheduler: {queue: team-a}"),))
    assert policy == EffectivePolicy(f"the {kind}", None, "kaiScheduler", "team-a")


A_TRAINJOB = TrainJob.read(a_trainjob())
IN_NAMESPACE = TrainJob.read(a_trainjob(with_spec(runtimeRef={"name": "mine", "kind": "TrainingRuntime"})))
A_JOBSET = JobSet.read(a_jobset())


@pytest.mark.parametrize(
    ("kind", "content", "owner", "facts"),
    [
        pytest.param(
            PolicySourceKind.OWNER,
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
            PolicySourceKind.NAMESPACE,
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
            PolicySourceKind.OWNER,
            "kaiScheduler: {queue: q}",
            A_JOBSET,
            ("kaiScheduler", "schedulerName", "kai-scheduler", "kai.scheduler/queue", "q"),
            id="KAI on a JobSet, which has no runtime",
        ),
        pytest.param(
            PolicySourceKind.RUNTIME,
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
    kind: PolicySourceKind, content: str, owner: OwnerObject, facts: tuple[str, ...]
) -> None:
    """A label on a job that runs already comes too late; the command that works is in the message."""
    policy = sources.resolve_policy((a_source(kind, content),), owner)
    assert isinstance(policy, InvalidPolicy)
    assert policy.failure.reason == Reason.INVALID_POLICY
    assert mentions(policy.failure.message, f"the {kind}", *facts)


@pytest.mark.parametrize("other", ["coscheduling", "volcano"])
def test_policies_of_the_trainer_itself_are_left_to_it(other: str) -> None:
    """spec.podGroupPolicy of a runtime is the Trainer's own field."""
    policy = sources.resolve_policy(
        (PolicySource(PolicySourceKind.RUNTIME_SPEC, "spec", {other: {"scheduleTimeoutSeconds": 60}}),)
    )
    assert policy == EffectivePolicy("spec", None, other)


def test_a_workload_says_which_policy_it_was_made_under() -> None:
    """The stored policy is the effective policy, whatever became of its source since."""
    text = "workload: {groups: [{name: a, schedulingPolicy: {gang: {minCount: 1}}}], onScale: Flag}"
    policy = sources.resolve_policy((a_source(PolicySourceKind.NAMESPACE, text),))
    assert isinstance(policy, EffectivePolicy)
    stored = Workload.read(a_workload(modifiers=(annotated(sources.policy_annotations(policy)),)))
    again = sources.resolve_policy(sources.source_of_workload(stored))
    assert isinstance(again, EffectivePolicy)
    assert (again.where, again.workload, again.kept) == ("the namespace", policy.workload, True)


def test_a_workload_made_under_the_default_says_nothing() -> None:
    """And keeps the default for ever."""
    assert sources.source_of_workload(Workload.read(a_workload())) == ()


def test_the_annotation_of_a_runtime_comes_before_its_spec() -> None:
    """Both may be there; an empty podGroupPolicy, which an older CRD leaves behind, is none."""
    runtime = {
        "kind": "TrainingRuntime",
        "metadata": {"name": "mine", "annotations": {ANNOTATION: FLAG}},
        "spec": {"podGroupPolicy": {"volcano": {}}},
    }
    assert [source.kind for source in sources.sources_of_runtime(runtime)] == [
        PolicySourceKind.RUNTIME,
        PolicySourceKind.RUNTIME_SPEC,
    ]
    assert sources.sources_of_runtime({"spec": {"podGroupPolicy": {}}}) == ()
    assert sources.sources_of_runtime({}) == ()
