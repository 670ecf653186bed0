"""Fields that the administrator locked: values that every policy has, and that none may set otherwise."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.objects.scheduling import Workload
from muster.policy.model import Plan
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import (
    ANNOTATION,
    LOCKED,
    InvalidPolicy,
    PolicySource,
    PolicySourceKind,
    resolve_policy,
    source_of_workload,
)
from tests.support.builders import (
    NOW,
    Object,
    a_job,
    a_jobset,
    a_replicated_job,
    observed,
    pods_of,
)
from tests.support.messages import mentions
from tests.support.planning import Observed, plan_workload, resolve

LOCKS = PolicySource(
    PolicySourceKind.LOCKED,
    "ConfigMap muster-system/muster-policy, key locked",
    "{onFailure: Hold, onScale: Follow, disruptionMode: {all: {}}, minCount: All}",
)


def sources(policy: str | None, locked: str = str(LOCKS.content)) -> tuple[PolicySource, ...]:
    """The locked fields, and a policy of the owner."""
    locks = PolicySource(LOCKS.kind, LOCKS.where, locked)
    return (locks,) if policy is None else (locks, PolicySource(PolicySourceKind.OWNER, "the owner", policy))


def failure_of(given: Observed) -> str:
    """The message of an owner whose policy is invalid, and whose pods are held."""
    resolved = resolve(given)
    assert isinstance(resolved, ResolvedOwner)
    assert resolved.failure is not None
    assert resolved.failure.reason == Reason.INVALID_POLICY
    assert resolved.policy.holds
    return resolved.failure.message


@pytest.mark.parametrize(
    ("policy", "path"),
    [
        pytest.param("workload: {onFailure: Basic}", "workload.onFailure", id="onFailure"),
        pytest.param("workload: {onScale: Flag}", "workload.onScale", id="onScale"),
        pytest.param(
            "workload: {groups: [{name: main, disruptionMode: {single: {}}}]}",
            "workload.groups[0].disruptionMode",
            id="disruptionMode",
        ),
        pytest.param(
            "workload: {groups: [{name: main, schedulingPolicy: {gang: {minCount: 1}}}]}",
            "workload.groups[0].schedulingPolicy.gang.minCount",
            id="minCount below the size",
        ),
        pytest.param(
            "workload: {schedulingTimeoutSeconds: 1, onTimeout: Basic}",
            "workload.onTimeout",
            id="pods one by one after a moment",
        ),
        pytest.param(
            "workload: {groups: [{name: main, schedulingPolicy: {basic: {}}}]}",
            "workload.groups[0].schedulingPolicy.basic",
            id="no gang at all",
        ),
    ],
)
def test_a_policy_that_sets_a_locked_field_otherwise_is_refused(policy: str, path: str) -> None:
    """The message has the policy, the path and who locked it; the pods keep their gate."""
    job = a_job(pods=4)
    given = observed(job, pods=pods_of(job), sources=sources(policy))
    message = failure_of(given)
    assert mentions(message, "the owner", path, "muster-system/muster-policy")
    decision = plan_workload(given, NOW)
    assert isinstance(decision, Plan)
    assert "PodGroup" not in {action.target.kind for action in decision.actions}


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param("workload: {groups: [{name: nobody}]}", id="a group that no label names"),
        pytest.param("!!bool x", id="no policy"),
        pytest.param("workload: {onFailure: Basic, bogus: 1}", id="an unknown field"),
    ],
)
def test_an_invalid_policy_is_no_way_around_a_lock(policy: str) -> None:
    """Without locks its pods would run in basic groups, which are weaker than what is locked."""
    job = a_job(pods=4)
    failure_of(observed(job, sources=sources(policy, "{disruptionMode: {all: {}}}")))


@pytest.mark.parametrize(
    "policy",
    [
        "workload: {onFailure: Hold}",
        "workload: {onFailure: Hold, bogus: 1}",
        "workload: {groups: [{name: x}]}",
    ],
)
def test_under_the_lock_basic_no_pod_waits_for_an_invalid_policy(policy: str) -> None:
    """The administrator wants jobs to run, with or without their gangs."""
    job = a_job(pods=4)
    given = observed(job, pods=pods_of(job), sources=sources(policy, "onFailure: Basic"))
    resolved = resolve(given)
    assert isinstance(resolved, ResolvedOwner)
    assert resolved.failure is not None
    assert not resolved.policy.holds
    decision = plan_workload(given, NOW)
    assert isinstance(decision, Plan)
    assert "PodGroup" in {action.target.kind for action in decision.actions}


def test_a_policy_gets_the_locked_values_that_it_does_not_set() -> None:
    """The built-in default too."""
    for policy in (None, "workload: {}", "workload: {onFailure: Hold, groups: [{name: main}]}"):
        resolved = resolve(observed(a_job(pods=4), sources=sources(policy)))
        assert isinstance(resolved, ResolvedOwner)
        assert resolved.failure is None
        assert resolved.policy.holds
        (group,) = resolved.tree
        assert group.settings["disruptionMode"] == {"all": {}}


STAGES: Object = {
    "workload": {
        "groups": [
            {
                "name": "stages",
                "schedulingPolicy": {"basic": {}},
                "groups": [{"name": "first"}, {"name": "second"}],
            }
        ]
    }
}


def test_a_basic_group_of_stages_is_allowed_and_keeps_its_mode() -> None:
    """No gang over stages that wait for each other is possible; the API refuses `all` for a basic group."""
    jobset = a_jobset(a_replicated_job("first"), a_replicated_job("second", after=("first",)))
    resolved = resolve(observed(jobset, sources=sources(json.dumps(STAGES))))
    assert isinstance(resolved, ResolvedOwner)
    assert resolved.failure is None
    (stages,) = resolved.tree
    assert "disruptionMode" not in stages.settings
    assert [leaf.settings["disruptionMode"] for leaf in stages.children] == [{"all": {}}] * 2


@pytest.mark.parametrize(
    "locked",
    [
        pytest.param("onFailure: Hold\nbogus: 1", id="an unknown field"),
        pytest.param("minCount: 3", id="another value"),
        pytest.param("!!map {}", id="a tag"),
        pytest.param("[]", id="no mapping"),
    ],
)
def test_locks_that_cannot_be_read_hold_every_new_owner(locked: str) -> None:
    """Pods that wait can still become gangs once the locks are repaired; pods in basic groups cannot."""
    message = failure_of(observed(a_job(), sources=sources("workload: {}", locked)))
    assert mentions(message, "muster-system/muster-policy", "key locked")


def test_the_workload_keeps_the_locked_values() -> None:
    """Its groups keep the locked values when the lock is gone, and nothing is refused any more."""
    policy = "workload: {groups: [{name: main}]}"
    decision = plan_workload(observed(a_job(pods=4), sources=sources(policy)), NOW)
    assert isinstance(decision, Plan)
    body: Any = decision.actions[0].body
    assert json.loads(body["metadata"]["annotations"][LOCKED]) == {
        "onFailure": "Hold",
        "onScale": "Follow",
        "disruptionMode": {"all": {}},
        "minCount": "All",
    }
    kept = json.loads(body["metadata"]["annotations"][ANNOTATION])["workload"]
    assert (kept["onFailure"], kept["onScale"]) == ("Hold", "Follow")
    stored = source_of_workload(Workload.read(body))
    assert {source.kind for source in stored} == {PolicySourceKind.STORED, PolicySourceKind.LOCKED}
    resolved = resolve(observed(a_job(pods=4), workload=body, sources=stored))
    assert isinstance(resolved, ResolvedOwner)
    assert resolved.policy.kept
    assert resolved.policy.holds
    assert resolved.tree[0].settings["disruptionMode"] == {"all": {}}


def test_locks_do_not_concern_pods_that_another_scheduler_groups() -> None:
    """Muster makes no groups for them."""
    runtime = PolicySource(PolicySourceKind.RUNTIME, "the runtime", "kaiScheduler: {}")
    assert resolve_policy((LOCKS, runtime)) == resolve_policy((runtime,))
    upstream = PolicySource(PolicySourceKind.UPSTREAM, "the runtime", "")
    assert resolve_policy((upstream,)) == resolve_policy((LOCKS, upstream))
    assert isinstance(resolve_policy((LOCKS, PolicySource(PolicySourceKind.OWNER, "o", "x"))), InvalidPolicy)
