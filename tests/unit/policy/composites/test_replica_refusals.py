"""Groups of groups per Job and per block that cannot be had: shapes, deadlocks, limits, fields."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import group_labels
from muster.policy.model import GroupingFailure
from muster.policy.reasons import Reason
from tests.support.builders import (
    Object,
)
from tests.support.messages import mentions
from tests.support.replicas import (
    LED,
    PER_JOB,
    one_template,
    tree_of,
    two_templates,
)

TREE = "[{name: replica, per: Job, groups: [%s]}]"
RACKS = "[{name: rack, size: 4, groups: [%s]}]"


@pytest.mark.parametrize(
    ("owner", "groups", "path", "facts"),
    [
        pytest.param(
            one_template({}),
            TREE % "{name: workers}",
            "workload.groups[0].groups[0].per",
            ("muster.dev/group-per: job", "workload.groups[0].per"),
            id="pods of all Jobs in a group below one per Job",
        ),
        pytest.param(
            one_template({group_labels.GROUP_SIZE: "2"}),
            TREE % "{name: workers}",
            "workload.groups[0].groups[0].per",
            ("muster.dev/group-per: job-block", "workload.groups[0].per"),
            id="blocks of all Jobs below a group per Job",
        ),
        pytest.param(
            one_template({group_labels.LEADER_GROUP: "leader"} | PER_JOB),
            TREE % "{name: leader}, {name: workers}",
            "workload.groups[0].groups[0].per",
            ("muster.dev/leader-group-per: job", "workload.groups[0].per"),
            id="leaders of all Jobs below a group per Job",
        ),
        pytest.param(
            one_template(LED),
            "[{name: leader, leader: true, per: Job}, {name: workers, per: Job}]",
            "workload.groups[1].per",
            ("muster.dev/group-per: job",),
            id="a leader per Job makes no workers per Job",
        ),
        pytest.param(
            one_template({group_labels.LEADER_GROUP: "leader"}),
            "[{name: leader, leader: true, per: Job}]",
            "workload.groups[0].per",
            ("muster.dev/leader-group-per: job",),
            id="a leader per Job without the label",
        ),
        pytest.param(
            one_template({}),
            RACKS % "{name: workers}",
            "workload.groups[0].groups[0].size",
            ("muster.dev/group-size", 4, "workload.groups[0].size"),
            id="pods of all blocks below a group per block",
        ),
        pytest.param(
            one_template({group_labels.GROUP_SIZE: "3"}),
            RACKS % "{name: workers, size: 3}",
            "workload.groups[0].groups[0].size",
            ("muster.dev/group-size", 4, "workload.groups[0].size"),
            id="blocks that are in two racks",
        ),
        pytest.param(
            one_template({group_labels.GROUP_SIZE: "1"}),
            RACKS % "{name: host, size: 3, groups: [{name: workers}]}",
            "workload.groups[0].groups[0].size",
            (4, "workload.groups[0].size"),
            id="groups of groups that are in two racks",
        ),
        pytest.param(
            one_template({group_labels.LEADER_GROUP: "leader", group_labels.GROUP_SIZE: "2"}),
            RACKS % "{name: leader}, {name: workers}",
            "workload.groups[0].groups[0]",
            ("workload.groups[0].size",),
            id="a leader below a group per block",
        ),
        pytest.param(
            one_template(PER_JOB | {group_labels.GROUP_SIZE: "2"}),
            "[{name: workers, size: 2}]",
            "workload.groups[0].size",
            ("muster.dev/group-per: job",),
            id="a size that does not count",
        ),
        pytest.param(
            two_templates(),
            "[{name: serve, groups: [{name: replica, per: Job, "
            "schedulingPolicy: {gang: {minGroupCount: 3}}, groups: [{name: leader}, {name: workers}]}]}]",
            "workload.groups[0].groups[0].schedulingPolicy.gang.minGroupCount",
            (3, 2),
            id="minGroupCount above the children of one replica",
        ),
    ],
)
def test_a_shape_that_cannot_be_had_names_the_field(
    owner: Object, groups: str, path: str, facts: tuple[object, ...]
) -> None:
    """Reason InvalidPolicy, with the path and the label that is needed."""
    failure = tree_of(owner, groups)
    assert isinstance(failure, GroupingFailure)
    assert failure.reason == Reason.INVALID_POLICY
    assert mentions(failure.message, "home", path, *facts)


def after(name: str) -> dict[str, Any]:
    """A replicatedJob that starts when another is ready."""
    return {"dependsOn": [{"name": name, "status": "Ready"}]}


REPLICAS = (
    "[{name: serve, schedulingPolicy: %s, groups: "
    "[{name: replica, per: Job, schedulingPolicy: %s, groups: [{name: leader}, {name: workers}]}]}]"
)
ALL, ANY = "{gang: {}}", "{gang: {minGroupCount: 1}}"


@pytest.mark.parametrize(
    ("jobset", "groups", "path"),
    [
        pytest.param(two_templates(), REPLICAS % (ALL, ALL), "", id="no dependencies"),
        pytest.param(
            two_templates(**after("leader")),
            REPLICAS % (ALL, ALL),
            "workload.groups[0].groups[0].schedulingPolicy",
            id="workers wait for the leader that waits for them",
        ),
        pytest.param(
            two_templates(**after("leader")),
            REPLICAS % (ALL, ANY),
            "",
            id="a leader starts without its workers",
        ),
        pytest.param(
            two_templates(leaders=3, **after("leader")),
            REPLICAS % (ANY, ALL),
            "workload.groups[0].groups[0].schedulingPolicy",
            id="the replica without workers starts, the others do not",
        ),
        pytest.param(
            two_templates(leaders=1, workers=2, **after("leader")),
            REPLICAS % (ALL, ANY),
            "workload.groups[0].schedulingPolicy",
            id="the replica without a leader comes when the other has started, which waits for it",
        ),
        pytest.param(
            two_templates(leaders=1, workers=2, **after("leader")),
            REPLICAS % (ANY, ANY),
            "",
            id="the replica without a leader comes when the other has started",
        ),
    ],
)
def test_a_replica_that_waits_for_itself_is_refused(jobset: Object, groups: str, path: str) -> None:
    """The start is simulated for each replica: one that is placed does not help another."""
    result = tree_of(jobset, groups)
    if path:
        assert isinstance(result, GroupingFailure)
        assert mentions(result.message, path)
    else:
        assert not isinstance(result, GroupingFailure), result
