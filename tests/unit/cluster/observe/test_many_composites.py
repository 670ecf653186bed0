"""The CompositePodGroups of an owner are read one by one while they are few, else from one list."""

from __future__ import annotations

import pytest

from muster.cluster.interface import SINGLE_READS
from muster.cluster.observe import members
from muster.policy.resolve import ResolvedOwner
from tests.support.planning import resolve
from tests.support.replicas import LED, PER_JOB, created, of_kind, one_template, seen
from tests.unit.cluster.counting import CountingSnapshot

POLICY = "workload: {groups: [{name: replica, per: Job, groups: [{name: leader}, {name: workers}]}]}"


@pytest.mark.parametrize(
    ("replicas", "reads"),
    [
        pytest.param(2, ["get CompositePodGroup"] * 2, id="few"),
        pytest.param(SINGLE_READS, ["get CompositePodGroup"] * SINGLE_READS, id="as many as are read singly"),
        pytest.param(SINGLE_READS + 1, ["list CompositePodGroup"], id="one more"),
    ],
)
def test_how_composites_are_read(replicas: int, reads: list[str]) -> None:
    """Those of the owner alone, whichever way."""
    jobset = one_template(LED | PER_JOB, replicas=replicas)
    resolved = resolve(seen(jobset, POLICY))
    assert isinstance(resolved, ResolvedOwner)
    _, bodies = created(jobset, POLICY)
    stranger = {**bodies[0], "metadata": {**bodies[0]["metadata"], "name": "another", "uid": "another-uid"}}
    cluster = CountingSnapshot(*bodies, stranger)
    found = {group.metadata.name for group in members.composites(cluster, resolved, ())}
    assert found == {body["metadata"]["name"] for body in of_kind("CompositePodGroup", bodies)}
    assert [read.rsplit(" ", 1)[0] if read.startswith("get") else read for read in cluster.reads] == reads
