"""The Workload of an owner's name that Muster made for another owner, whose kind may no longer be served."""

from __future__ import annotations

import pytest

from muster.policy.model import Plan
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.runtime.steps import step_named
from tests.support.builders import NOW, a_job, a_workload, labelled, ref, with_spec
from tests.unit.cluster.counting import CountingSnapshot

LABELS = {"app.kubernetes.io/managed-by": "muster", "muster.dev/owner-uid": "99999999-0000"}
KINDS = [("TrainJob", "trainer.kubeflow.org"), ("JobSet", "jobset.x-k8s.io")]


@pytest.mark.parametrize(("kind", "group"), KINDS)
@pytest.mark.parametrize("name", ["create_workload", "create_pod_groups", "emit_conditions", "resize_gang"])
def test_the_name_is_taken_where_the_kind_is_not_served(name: str, kind: str, group: str) -> None:
    """The Trainer was uninstalled, or serves another version; no step is silent about it."""
    named = {"apiGroup": group, "kind": kind, "name": "llama"}
    leftover = a_workload(modifiers=(labelled(LABELS), with_spec(controllerRef=named)))
    job = a_job()
    step = step_named(name)
    inputs = step.observe(CountingSnapshot(job, leftover, missing=(kind,)), ref(job))
    assert isinstance(inputs.resolved, ResolvedOwner)
    failure = inputs.resolved.why_no_groups
    assert failure is not None
    assert failure.reason == Reason.WORKLOAD_NAME_TAKEN
    if name in ("create_workload", "emit_conditions"):
        decision = step.plan(inputs, NOW)
        assert isinstance(decision, Plan)
        assert Reason.WORKLOAD_NAME_TAKEN in str(decision.actions)
