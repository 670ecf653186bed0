"""Groups of a deep tree that exist outside of the CompositePodGroup above them."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.scheduling import CompositePodGroup
from muster.policy.groups.min_counts import wanted_min_group_counts
from muster.policy.model import NoOp
from muster.policy.sources.source import ANNOTATION, PolicySource, PolicySourceKind
from tests.support.builders import Object, a_child_job, a_jobset, a_replicated_job, labelled, observed
from tests.support.planning import resolve
from tests.support.trees import a_composite, below

TOP, ONE, TWO = (f"llama-{name}-22222222" for name in ("top", "one", "two"))
JOBSET = a_jobset(a_replicated_job("a"), a_replicated_job("b"))
POLICY = """
workload:
  groups:
  - name: top
    groups:
    - {name: one, groups: [{name: a}], disruptionMode: {all: {}}}
    - {name: two, groups: [{name: b}], disruptionMode: {all: {}}}
"""
FOREIGN = labelled({"app.kubernetes.io/managed-by": "somebody"})


@pytest.mark.parametrize(
    ("two", "expected"),
    [
        pytest.param([below(TOP)], 2, id="below the group of the tree"),
        pytest.param([FOREIGN], 1, id="a user's without a parent"),
        pytest.param([below("nowhere")], 1, id="below another"),
    ],
)
def test_min_group_count_counts_only_composites_below_the_group(two: list[Any], expected: int) -> None:
    """A CompositePodGroup never gets another parent, so one more could never be met."""
    composites: list[Object] = [
        a_composite(TOP, 2),
        a_composite(ONE, 1, below(TOP)),
        a_composite(TWO, 1, *two),
    ]
    seen = observed(
        JOBSET,
        jobs=[a_child_job(JOBSET, name, 0) for name in "ab"],
        composites=tuple(map(CompositePodGroup.read, composites)),
        sources=(PolicySource(PolicySourceKind.OWNER, ANNOTATION, POLICY),),
    )
    resolved = resolve(seen)
    assert not isinstance(resolved, NoOp)
    assert wanted_min_group_counts(resolved, seen.members)[TOP] == expected
