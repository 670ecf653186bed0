"""Fields that the administrator locked: values that every policy has, and that none may set otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy.model import Plan
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind, resolve_policy
from tests.support.builders import NOW, a_job, observed, pods_of
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


FEWER = "schedulingPolicy: {gang: {minCount: 1}}"
LOST = "workload: {membersLostSeconds: %d}"
TIMEOUT = "workload: {schedulingTimeoutSeconds: 1, onTimeout: Basic}"


@pytest.mark.parametrize(
    ("policy", "locked", "facts"),
    [
        ("workload: {onFailure: Basic}", ALL, ("the owner", "workload.onFailure", WHERE)),
        (GROUP % "disruptionMode: {single: {}}", ALL, (f"{FIELD}.disruptionMode", WHERE)),
        (GROUP % FEWER, ALL, (f"{FIELD}.schedulingPolicy.gang.minCount", WHERE)),
        (GROUP % "schedulingPolicy: {basic: {}}", ALL, (f"{FIELD}.schedulingPolicy.basic", WHERE)),
        (TIMEOUT, ALL, ("workload.onTimeout", WHERE)),
        ("workload: {onFailure: Basic, onScale: Flag}", ALL, ("workload.onFailure", "workload.onScale")),
        (
            LOST % 9,
            "{onMembersLost: Restart, membersLostSeconds: 60}",
            ("workload.membersLostSeconds", WHERE),
        ),
        # No policy that is invalid otherwise is a way around a lock.
        ("workload: {groups: [{name: x}]}", MODE, ()),
        ("!!bool x", MODE, ()),
        ("workload: {onFailure: Basic, x: 1}", MODE, ()),
        # Locked fields that are invalid themselves.
        ("workload: {}", "{onFailure: Hold, x: 1}", (WHERE,)),
        ("workload: {}", "minCount: 3", (WHERE,)),
        ("workload: {}", "!!map {}", (WHERE,)),
        ("workload: {}", "[]", (WHERE,)),
    ],
)
def test_what_the_locks_refuse_holds_the_pods(policy: str, locked: str, facts: tuple[str, ...]) -> None:
    """Fallback PodGroups would be weaker than any lock; the message has the path and who locked it."""
    message, made = refusal(policy, locked)
    assert mentions(message, *facts)
    assert "PodGroup" not in made


@pytest.mark.parametrize("fields", ["onFailure: Hold", "onFailure: Hold, bogus: 1", "groups: [{name: x}]"])
def test_under_the_lock_basic_no_pod_waits_for_an_invalid_policy(fields: str) -> None:
    """The administrator wants jobs to run, with or without their gangs."""
    assert "PodGroup" in refusal(f"workload: {{{fields}}}", "onFailure: Basic")[1]


def refusal(policy: str, locked: str) -> tuple[str, set[str]]:
    """Why a policy is invalid, and the kinds of objects that are written for the owner."""
    given = observed(JOB, pods=pods_of(JOB), sources=sources(policy, locked))
    failure, decision = resolved(given).failure, plan_workload(given, NOW)
    assert failure is not None
    assert failure.reason == Reason.INVALID_POLICY
    assert isinstance(decision, Plan)
    return failure.message, {action.target.kind for action in decision.actions}


@pytest.mark.parametrize("policy", [None, "workload: {}", GROUP % "disruptionMode: {all: {}}"])
def test_a_policy_gets_the_locked_values_that_it_does_not_set(policy: str | None) -> None:
    """The built-in default too."""
    owner = resolved(observed(JOB, sources=sources(policy)))
    assert owner.policy.holds
    assert [group.settings["disruptionMode"] for group in owner.tree] == [{"all": {}}]


def test_locks_do_not_concern_pods_that_another_scheduler_groups() -> None:
    """Muster makes no groups for them."""
    (locks,) = sources(None)
    runtime = PolicySource(PolicySourceKind.RUNTIME, "the runtime", "kaiScheduler: {}")
    assert resolve_policy((locks, runtime)) == resolve_policy((runtime,))
