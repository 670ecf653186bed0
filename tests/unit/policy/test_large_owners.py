"""Owners of hundreds of groups or millions of completions: pods are seen a few times, numbers counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from shared.objects.jobs import Pod
from shared.objects.scheduling import Workload
from shared.policy import marks
from shared.policy.conditions import places_of, verdicts
from shared.policy.model import Nothing, Observed, Plan
from shared.policy.ownership import Considered, consider
from shared.policy.pod_groups import plan_pod_groups
from shared.policy.resize import wanted_sizes
from shared.policy.workload import plan_workload
from tests.support.builders import (
    NOW,
    a_child_job,
    a_job,
    a_jobset,
    a_pod,
    a_replicated_job,
    observed,
    template_labelled,
    with_spec,
    with_status,
)

JOBS, PODS = 400, 12
CPU_SECONDS = 0.5
"""Five times what it takes, and a tenth of what a look at all pods for every group or Job takes."""


@pytest.fixture(scope="module")
def large() -> tuple[Observed, Considered]:
    """A JobSet with a group for each of its Jobs, and all their pods."""
    per_job = template_labelled({marks.GROUP_PER: "job"})
    jobset = a_jobset(a_replicated_job("node", per_job, replicas=JOBS, pods=PODS, mark="main"))
    jobs = [a_child_job(jobset, "node", index) for index in range(JOBS)]
    seen = observed(jobset, jobs=jobs)
    considered = consider(seen)
    assert not isinstance(considered, Nothing)
    pods = []
    for (_, group), job in zip(places_of(considered), jobs, strict=True):
        first = a_pod(job, 0)
        first["spec"]["schedulingGroup"]["podGroupName"] = group
        pods += [Pod.read(first)] * PODS
    return replace(seen, pods=tuple(pods)), considered


def _groups(seen: Observed, _considered: Considered) -> Plan:
    """What create_pod_groups makes of the Workload that create_workload makes."""
    workload = plan_workload(seen, NOW)
    assert isinstance(workload, Plan)
    body = {**(workload.actions[0].body or {})}
    body["metadata"] = {**body["metadata"], "uid": "workload-uid"}
    made = plan_pod_groups(replace(seen, workload=Workload.read(body)), NOW)
    assert isinstance(made, Plan)
    return made


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(wanted_sizes, id="sizes"),
        pytest.param(verdicts, id="verdicts"),
        pytest.param(_groups, id="groups"),
    ],
)
def test_what_a_large_owner_costs(
    large: tuple[Observed, Considered], ask: Callable[[Observed, Considered], object]
) -> None:
    """A trigger waits for ten seconds."""
    began = time.process_time()
    ask(*large)
    assert time.process_time() - began < CPU_SECONDS


@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
def test_what_a_job_of_many_completions_costs(mode: str) -> None:
    """The API server takes two thousand million of them, of which a few run at once: they are counted."""
    many = with_spec(parallelism=3, completions=10_000_000, completionMode=mode)
    job = a_job(many, with_status(succeeded=2_000_000, completedIndexes="0-999999,1000001-2000000"))
    began = time.process_time()
    seen = observed(job)
    considered = consider(seen)
    assert not isinstance(considered, Nothing)
    assert wanted_sizes(seen, considered) == {"llama-main-33333333": 3}
    assert time.process_time() - began < CPU_SECONDS
