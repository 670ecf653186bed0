"""Stamped pods of a template that Muster does not group, in an owner whose other templates it groups."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import group_labels
from muster.policy.model import NoOp, Plan
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import (
    NOW,
    Modifier,
    Object,
    a_child_job,
    a_gang,
    a_job,
    a_jobset,
    a_namespace,
    a_pod_group,
    a_replicated_job,
    a_workload,
    annotated,
    being_deleted,
    observed,
    pods_of,
    stamped,
    succeeded,
    with_spec,
)
from tests.support.messages import mentions
from tests.support.planning import Observed, conditions_of, needs_groups, plan_workload, resolve

DELEGATED = annotated({group_labels.UPSTREAM_TEMPLATE: "sim"})
SCHEDULED = with_spec(scheduling={"schedulingPolicy": {"gang": {}}})
NAME = "llama-sim-22222222"
PATH = "spec.replicatedJobs[1].template.spec.template"


def a_mixed(modifier: Modifier = DELEGATED) -> Object:
    """A JobSet of workers, and of a `sim` that is labelled by hand although another controller groups it."""
    return a_jobset(a_replicated_job("workers"), a_replicated_job("sim", modifier, label="sim"))


def seen(jobset: Object | None = None, *modifiers: Modifier, **rest: Any) -> Observed:
    """The JobSet with its Jobs and the pods of `sim`, stamped and gated at birth."""
    jobset = jobset or a_mixed()
    jobs = [a_child_job(jobset, name, 0) for name in ("workers", "sim")]
    return observed(jobset, jobs=jobs, pods=pods_of(jobs[1], *modifiers), **rest)


def made(given: Observed) -> list[str]:
    """What create_workload makes, by kind and name, in order."""
    plan = plan_workload(given, NOW)
    actions = plan.actions if isinstance(plan, Plan) else ()
    return [f"{action.target.kind} {action.target.name}" for action in actions if action.verb == "create"]


WORKLOAD = a_workload(a_gang("workers", 2), root=a_mixed())


@pytest.mark.parametrize("modifier", [DELEGATED, SCHEDULED], ids=["the annotation", "spec.scheduling"])
def test_a_labelled_template_that_upstream_groups_gets_a_fallback_group(modifier: Modifier) -> None:
    """Admission stamps its pods by the group label alone; without a group they would wait for ever."""
    plan = plan_workload(seen(a_mixed(modifier), workload=WORKLOAD), NOW)
    assert isinstance(plan, Plan)
    assert plan.reason == Reason.STAND_INS_CREATED
    fallback_group, status, event = plan.actions
    assert fallback_group.target.name == NAME
    assert fallback_group.body is not None
    assert fallback_group.body["spec"] == {"schedulingPolicy": {"basic": {}}}
    reason, _, why = fallback_group.body["metadata"]["annotations"]["muster.dev/stand-in"].partition(": ")
    assert reason == "UpstreamGroups"
    assert mentions(why, PATH)
    assert status.body is not None
    (ready,) = status.body["status"]["conditions"]
    assert (ready["type"], ready["status"], ready["reason"]) == ("PodGroupsReady", "False", "UpstreamGroups")
    assert mentions(ready["message"], NAME, PATH)
    assert (event.body or {})["message"] == ready["message"]


def test_the_other_templates_keep_their_gang() -> None:
    """Both in one plan where the Workload is missing too; two pods of one group make one fallback group."""
    assert [name for name in made(seen()) if "Event" not in name] == ["Workload llama", f"PodGroup {NAME}"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(
            seen(None, stamped("llama-sim-upstreams"), workload=WORKLOAD), id="upstream grouped them"
        ),
        pytest.param(seen(None, succeeded, workload=WORKLOAD), id="they have ended"),
        pytest.param(seen(None, being_deleted, workload=WORKLOAD), id="they are being deleted"),
        pytest.param(seen(workload=WORKLOAD, groups=[a_pod_group(NAME)]), id="the group is there"),
        pytest.param(
            observed(a_mixed(), workload=WORKLOAD),
            id="no pods: the template's group label alone creates nothing",
        ),
    ],
)
def test_no_fallback_group_is_created_where_no_pod_waits_for_it(given: Observed) -> None:
    """The pods decide, not the template."""
    decision = plan_workload(given, NOW)
    assert isinstance(decision, NoOp)
    assert decision.reason == Reason.UP_TO_DATE


def test_pods_labelled_before_the_namespace_opted_out_get_a_fallback_group_too() -> None:
    """The Job keeps its group label and goes on making stamped pods; the JobSet's template has none."""
    jobset = a_jobset(a_replicated_job("workers", label="workers"), a_replicated_job("sim"))
    given = seen(jobset, namespace=a_namespace(enabled=False), workload=WORKLOAD)
    plan = plan_workload(given, NOW)
    assert isinstance(plan, Plan)
    assert "NotMarked: " in str(plan.actions[0].body)
    assert plan.actions[0].target.name == NAME


def test_a_grouping_failure_leaves_fallback_groups_for_all() -> None:
    """Those of its own groups, and beside them those of the strays; its condition has one writer."""
    broken = (PolicySource(PolicySourceKind.OWNER, "home", "workload: {bogus: 1}"),)
    plan = plan_workload(seen(sources=broken), NOW)
    assert isinstance(plan, Plan)
    assert plan.reason == Reason.INVALID_POLICY
    actions = [f"{action.verb} {action.target.kind} {action.target.name}" for action in plan.actions]
    assert actions[0] == "create PodGroup llama-workers-22222222"
    assert actions[-1] == f"create PodGroup {NAME}"
    assert [action.subresource for action in plan.actions].count("status") == 1


@pytest.mark.parametrize(
    ("jobset", "needed"),
    [
        pytest.param(a_mixed(), True, id="a template that upstream groups"),
        pytest.param(a_jobset(a_replicated_job("workers")), False, id="all are Muster's"),
        pytest.param(
            a_jobset(a_replicated_job("workers"), a_replicated_job("sim", label="none")),
            False,
            id="one opted out: its pods are never stamped",
        ),
    ],
)
def test_pods_are_read_only_where_some_may_be_stamped(jobset: Object, needed: bool) -> None:
    """Most owners cost no list of pods."""
    assert needs_groups(observed(jobset, workload=WORKLOAD)) is needed


@pytest.mark.parametrize(
    ("modifiers", "ready", "facts"),
    [
        pytest.param((), False, (NAME, "because"), id="while its pods live"),
        pytest.param((succeeded,), True, (), id="no longer when they have ended"),
    ],
)
def test_the_condition_says_so(modifiers: tuple[Modifier, ...], ready: bool, facts: tuple[str, ...]) -> None:
    """emit_conditions says the same as create_workload, so that neither takes the other's word back."""
    fallback_group = a_pod_group(
        NAME, annotated({"muster.dev/stand-in": "UpstreamGroups: because"}), root=a_mixed(), min_count=None
    )
    workers = a_pod_group("llama-workers-22222222", root=a_mixed())
    given = seen(None, *modifiers, workload=WORKLOAD, groups=[workers, fallback_group])
    resolved = resolve(given)
    assert isinstance(resolved, ResolvedOwner)
    results, _ = conditions_of(given, resolved)
    assert results.true is ready
    assert mentions(results.message, *facts)
    assert ready or results.reason == Reason.UPSTREAM_GROUPS


def test_a_job_with_the_labels_of_a_jobset_gets_a_fallback_group() -> None:
    """Copied from a child Job: stamp-pods names the group of its pods after that JobSet, which is gone."""
    uid, name = "5ffa9a1b-0000-0000-0000-000000000000", "train"
    job = a_job()
    labels = {
        group_labels.JOBSET_UID: uid,
        group_labels.JOBSET_NAME: name,
        group_labels.REPLICATED_JOB: "node",
    }
    job["spec"]["template"]["metadata"]["labels"] |= labels
    given = observed(job, workload=a_workload(root=job), groups=[a_pod_group()], pods=pods_of(job))
    assert needs_groups(given)
    assert "PodGroup train-main-5ffa9a1b" in made(given)
    assert not needs_groups(observed(a_job(), workload=a_workload(), pods=pods_of(a_job())))
