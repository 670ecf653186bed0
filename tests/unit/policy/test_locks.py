"""Fields that the administrator locked: values that every policy has, and that none may set otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy.model import Plan
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind, resolve_policy
from tests.support.builders import NOW, a_job, a_jobset, a_replicated_job, observed, pods_of
from tests.support.messages import mentions
from tests.support.planning import plan_workload, resolve

WHERE = "ConfigMap muster-system/muster-policy, key locked"
ALL = "{onFailure: Hold, onScale: Follow, disruptionMode: {all: {}}, minCount: All}"
MODE = "{disruptionMode: {all: {}}}"
JOB = a_job(pods=4)


def sources(policy: str | None, locked: str = ALL) -> tuple[PolicySource, ...]:
    """The locked fields, and a policy of the owner."""
    locks = PolicySource(PolicySourceKind.LOCKED, WHERE, locked)
    return (locks,) if policy is None else (locks, PolicySource(PolicySourceKind.OWNER, "the owner", policy))


def resolved(given: Any) -> ResolvedOwner:
    """The resolved owner."""
    owner = resolve(given)
    assert isinstance(owner, ResolvedOwner)
    return owner


GROUP = "workload: {groups: [{name: main, %s}]}"
FIELD = "workload.groups[0]"


@pytest.mark.parametrize(
    ("policy", "locked", "facts"),
    [
        ("workload: {onFailure: Basic}", ALL, ("the owner", "workload.onFailure", WHERE)),
        (GROUP % "disruptionMode: {single: {}}", ALL, (f"{FIELD}.disruptionMode", WHERE)),
        (
            GROUP % "schedulingPolicy: {gang: {minCount: 1}}",
            ALL,
            (f"{FIELD}.schedulingPolicy.gang.minCount", WHERE),
        ),
        (GROUP % "schedulingPolicy: {basic: {}}", ALL, (f"{FIELD}.schedulingPolicy.basic", WHERE)),
        ("workload: {schedulingTimeoutSeconds: 1, onTimeout: Basic}", ALL, ("workload.onTimeout", WHERE)),
        pytest.param("workload: {groups: [{name: x}]}", MODE, (), id="no way around: a group without label"),
        pytest.param("!!bool x", MODE, (), id="no way around: no policy"),
        pytest.param("workload: {onFailure: Basic, x: 1}", MODE, (), id="no way around: an unknown field"),
        pytest.param("workload: {}", "{onFailure: Hold, x: 1}", (WHERE,), id="locks: an unknown field"),
        pytest.param("workload: {}", "minCount: 3", (WHERE,), id="locks: another value"),
        pytest.param("workload: {}", "!!map {}", (WHERE,), id="locks: a tag"),
        pytest.param("workload: {}", "[]", (WHERE,), id="locks: no mapping"),
    ],
)
def test_what_the_locks_refuse_holds_the_pods(policy: str, locked: str, facts: tuple[str, ...]) -> None:
    """Fallback PodGroups would be weaker than any lock; the message has the path and who locked it."""
    given = observed(JOB, pods=pods_of(JOB), sources=sources(policy, locked))
    owner, decision = resolved(given), plan_workload(given, NOW)
    assert owner.failure is not None
    assert owner.failure.reason == Reason.INVALID_POLICY
    assert mentions(owner.failure.message, *facts)
    assert owner.policy.holds
    assert isinstance(decision, Plan)
    assert "PodGroup" not in {action.target.kind for action in decision.actions}


@pytest.mark.parametrize("fields", ["onFailure: Hold", "onFailure: Hold, bogus: 1", "groups: [{name: x}]"])
def test_under_the_lock_basic_no_pod_waits_for_an_invalid_policy(fields: str) -> None:
    """The administrator wants jobs to run, with or without their gangs."""
    given = observed(JOB, pods=pods_of(JOB), sources=sources(f"workload: {{{fields}}}", "onFailure: Basic"))
    owner, decision = resolved(given), plan_workload(given, NOW)
    assert owner.failure is not None
    assert not owner.policy.holds
    assert isinstance(decision, Plan)
    assert "PodGroup" in {action.target.kind for action in decision.actions}


@pytest.mark.parametrize(
    "policy", [None, "workload: {}", "workload: {onFailure: Hold, groups: [{name: main}]}"]
)
def test_a_policy_gets_the_locked_values_that_it_does_not_set(policy: str | None) -> None:
    """The built-in default too."""
    owner = resolved(observed(JOB, sources=sources(policy)))
    assert owner.policy.holds
    assert [group.settings["disruptionMode"] for group in owner.tree] == [{"all": {}}]


def test_a_basic_group_of_stages_is_allowed_and_keeps_its_mode() -> None:
    """No gang over stages that wait for each other is possible; the API refuses `all` for a basic group."""
    jobset = a_jobset(a_replicated_job("first"), a_replicated_job("second", after=("first",)))
    below = "groups: [{name: first}, {name: second}]"
    policy = f"workload: {{groups: [{{name: stages, schedulingPolicy: {{basic: {{}}}}, {below}}}]}}"
    owner = resolved(observed(jobset, sources=sources(policy)))
    assert owner.failure is None
    (stages,) = owner.tree
    assert "disruptionMode" not in stages.settings
    assert [leaf.settings["disruptionMode"] for leaf in stages.children] == [{"all": {}}] * 2


def test_locks_do_not_concern_pods_that_another_scheduler_groups() -> None:
    """Muster makes no groups for them."""
    (locks,) = sources(None)
    runtime = PolicySource(PolicySourceKind.RUNTIME, "the runtime", "kaiScheduler: {}")
    upstream = PolicySource(PolicySourceKind.UPSTREAM, "the runtime", "")
    for source in (runtime, upstream):
        assert resolve_policy((locks, source)) == resolve_policy((source,))
