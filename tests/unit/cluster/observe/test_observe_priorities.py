"""Which steps read PriorityClasses, and when."""

from __future__ import annotations

import pytest

from muster.runtime.steps import step_named
from tests.support.builders import (
    Object,
    a_child_job,
    a_gang,
    a_jobset,
    a_replicated_job,
    a_workload,
    ref,
)
from tests.support.priorities import a_priority_class, of_class
from tests.unit.cluster.counting import CountingSnapshot


def a_pair(*classes: str) -> Object:
    """A JobSet of two replicatedJobs in one group, with these classes."""
    names = zip("ab", classes, strict=True)
    return a_jobset(*(a_replicated_job(name, of_class(one), label="g") for name, one in names))


ALIKE, SEVERAL = a_pair("high", "high"), a_pair("high", "urgent")
MADE = a_workload(a_gang("g", 4), root=SEVERAL)


@pytest.mark.parametrize(
    ("step", "jobset", "made", "read"),
    [
        pytest.param("create_workload", SEVERAL, (), 1, id="create_workload: several names"),
        pytest.param("create_workload", ALIKE, (), 1, id="create_workload: one name"),
        pytest.param("create_workload", SEVERAL, (MADE,), 0, id="create_workload: judged before"),
        pytest.param("emit_conditions", SEVERAL, (), 1, id="emit_conditions: several names"),
        pytest.param("emit_conditions", ALIKE, (), 0, id="emit_conditions: one name"),
        pytest.param("emit_conditions", SEVERAL, (MADE,), 0, id="emit_conditions: judged before"),
        pytest.param("create_pod_groups", SEVERAL, (MADE,), 0, id="create_pod_groups: never"),
        pytest.param("resize_gang", SEVERAL, (MADE,), 0, id="resize_gang: never"),
    ],
)
def test_classes_are_read_by_who_judges_them(
    step: str, jobset: Object, made: tuple[Object, ...], read: int
) -> None:
    """One list, and none once the Workload is made, which says whether its pods preempt."""
    jobs = [a_child_job(jobset, name, 0) for name in "ab"]
    cluster = CountingSnapshot(
        jobset, *jobs, *made, a_priority_class("high", 9), a_priority_class("urgent", 9)
    )
    inputs = step_named(step).observe(cluster, ref(jobset))
    assert cluster.reads.count("list PriorityClass") == read
    ranks = [pod_set.priority.rank for pod_set in inputs.resolved.pod_sets.pod_sets]
    assert [isinstance(rank, tuple) for rank in ranks] == [read == 1] * 2
