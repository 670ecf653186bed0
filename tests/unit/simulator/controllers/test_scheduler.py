"""The simulated scheduler places groups as kube-scheduler 1.37.1 does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from muster.cluster.interface import Object
from muster.simulator.controllers import node
from muster.simulator.controllers.framework.writes import Bind, Patch, RecordEvent, Write
from muster.simulator.controllers.scheduler.controller import INITIALLY_SCHEDULED, SchedulerController
from tests.unit.simulator.controllers.support import NOW, an_object, changed, merge, recorded, view

GATE = {"name": "muster.dev/pod-group"}


def _group(name: str = "gang", min_count: int | None = 3, **spec: Any) -> Object:
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return an_object(
        "scheduling.k8s.io/v1beta1", "PodGroup", name, {"schedulingPolicy": policy, "priority": 0, **spec}
    )


def _composite(name: str, min_groups: int | None, **spec: Any) -> Object:
    policy = {"basic": {}} if min_groups is None else {"gang": {"minGroupCount": min_groups}}
    return an_object(
        "scheduling.k8s.io/v1alpha3", "CompositePodGroup", name, {"schedulingPolicy": policy, **spec}
    )


def _pod(name: str, group: str = "gang", cpu: str = "6", **spec: Any) -> Object:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    grouped = {"schedulingGroup": {"podGroupName": group}} if group else {}
    pod = {"containers": [container], "schedulerName": "default-scheduler", "priority": 0, **grouped, **spec}
    return {**an_object("v1", "Pod", name, pod), "status": {"phase": "Pending"}}


def _pods(count: int, group: str = "gang", **spec: Any) -> list[Object]:
    return [_pod(f"{group}-{index}", group, **spec) for index in range(count)]


def _nodes(count: int, **room: Any) -> list[Object]:
    return [node(f"node-{index}", **room) for index in range(1, count + 1)]


def _look(*items: Object) -> tuple[Write, ...]:
    return SchedulerController().reconcile(("cluster",), view(*items), NOW).writes


def _bound(writes: Iterable[Write]) -> dict[str, str]:
    return {write.pod["metadata"]["name"]: write.node for write in writes if isinstance(write, Bind)}


def _group_conditions(writes: Iterable[Write]) -> dict[str, tuple[str, str, str]]:
    """Per PodGroup the status, reason and message of its condition, as written."""
    return {
        write.name: (condition["status"], condition["reason"], condition["message"])
        for write in writes
        if isinstance(write, Patch) and write.resource.kind == "PodGroup"
        for condition in write.body["status"]["conditions"]
        if condition["type"] == INITIALLY_SCHEDULED
    }


def _pod_messages(writes: Iterable[Write]) -> dict[str, str]:
    return {
        write.name: condition["message"]
        for write in writes
        if isinstance(write, Patch) and write.resource.kind == "Pod"
        for condition in write.body["status"].get("conditions", [])
    }


def test_gang_that_fits_is_bound_together_after_its_condition() -> None:
    """The PodGroup says Scheduled, then every pod is bound."""
    writes = _look(*_nodes(3), _group(), *_pods(3))
    assert sorted(_bound(writes).values()) == ["node-1", "node-2", "node-3"]
    assert _group_conditions(writes) == {"gang": ("True", "Scheduled", "")}
    kinds = [type(write) for write in writes if not isinstance(write, RecordEvent)]
    assert kinds == [Patch, Patch, Patch, Bind, Bind, Bind]


def test_all_but_the_last_pod_of_a_gang_are_nominated_before_binding() -> None:
    """As recorded, status.nominatedNodeName is written for every pod but the last one placed."""
    writes = _look(*_nodes(3), _group(), *_pods(3))
    nominated = [
        write.name
        for write in writes
        if isinstance(write, Patch) and "nominatedNodeName" in write.body["status"]
    ]
    assert nominated == ["gang-0", "gang-1"]


def test_gang_that_does_not_fit_is_refused_with_the_recorded_message() -> None:
    """Four pods on three nodes: nothing is bound, group and pods say what the real scheduler said."""
    group, *pods = recorded("does-not-fit")
    condition = group["status"]["conditions"][0]
    fresh = [changed(pod, conditions=[]) for pod in pods]
    writes = _look(*_nodes(3, gpu=4), {**group, "status": {}}, *fresh)
    assert _bound(writes) == {}
    assert _group_conditions(writes) == {
        group["metadata"]["name"]: ("False", "Unschedulable", condition["message"])
    }
    assert _pod_messages(writes) == {
        pod["metadata"]["name"]: pod["status"]["conditions"][0]["message"] for pod in pods
    }
    repeated = _look(*_nodes(3, gpu=4), group, *pods)
    assert repeated == ()


def test_cycle_stops_at_the_first_pod_that_makes_the_gang_impossible() -> None:
    """Pods that were not tried any more repeat the group's reason; what was tried is counted."""
    writes = _look(*_nodes(1), _group(min_count=4), *_pods(4))
    reason = "minCount (4) cannot be satisfied: 1 scheduled, 2 remaining"
    assert reason in _group_conditions(writes)["gang"][2]
    messages = _pod_messages(writes)
    assert messages["gang-1"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert reason in messages["gang-3"]


def test_tries_leave_no_trace() -> None:
    """A gang that was refused takes no room from the next, nor does one that was placed take it twice."""
    refused, placed, last = _pods(3, "refused"), _pods(1, "placed", cpu="4"), _pods(1, "last", cpu="4")
    groups = [_group("refused", 3), _group("placed", 1), _group("last", 1)]
    writes = _look(*_nodes(1), *groups, *refused, *placed, *last)
    assert sorted(_bound(writes)) == ["last-0", "placed-0"]


def test_room_for_a_refused_gang_places_it() -> None:
    """The recorded gang, once refused, is bound as soon as a fourth node is there."""
    group, *pods = recorded("does-not-fit")
    writes = _look(*_nodes(4), group, *pods)
    assert len(_bound(writes)) == 4
    assert _group_conditions(writes)[group["metadata"]["name"]][:2] == ("True", "Scheduled")


@pytest.mark.parametrize(
    "items",
    [
        pytest.param(_pods(3), id="a group that does not exist"),
        pytest.param([_group(), *_pods(2)], id="fewer pods than minCount"),
        pytest.param(
            [_group(), *_pods(2), _pod("late", schedulingGates=[GATE])], id="one gated pod of a gang"
        ),
        pytest.param(
            [_group(min_count=None), *_pods(2), _pod("late", schedulingGates=[GATE])],
            id="one gated pod of a basic group",
        ),
        pytest.param(
            [_group(parentCompositePodGroupName="root"), *_pods(3)], id="a parent group that does not exist"
        ),
        pytest.param(
            [
                _group(parentCompositePodGroupName="root"),
                _composite("root", 2),
                *_pods(3),
            ],
            id="a composite with fewer groups than minGroupCount",
        ),
        pytest.param([_group(), *_pods(3, schedulerName="other-scheduler")], id="pods of another scheduler"),
    ],
)
def test_waiting_is_silent(items: list[Object]) -> None:
    """Whatever keeps pods out of the queue, nothing at all is written about it."""
    assert _look(*_nodes(3), *items) == ()


@pytest.mark.parametrize(
    ("known", "places"),
    [
        pytest.param({"spec": {"nodeName": "node-3"}}, True, id="a bound member counts"),
        pytest.param(
            {"spec": {"nodeName": "node-3"}, "metadata": {"deletionTimestamp": "2027-01-15T08:00:09Z"}},
            True,
            id="a bound member that is being deleted still counts",
        ),
        pytest.param(
            {"spec": {"nodeName": "node-3"}, "status": {"phase": "Succeeded"}},
            False,
            id="a member that has succeeded counts no more",
        ),
    ],
)
def test_min_count_counts_members_that_are_known_and_unfinished(known: Object, places: bool) -> None:
    """Two new pods of a gang of three are placed if the third member counts."""
    third = merge(_pod("old", cpu="1"), known)
    assert bool(_bound(_look(*_nodes(3), _group(), *_pods(2), third))) is places


def test_basic_group_places_the_pods_that_fit() -> None:
    """A basic group is Scheduled when one pod fits; the others say what they lack."""
    writes = _look(*_nodes(2), _group(min_count=None), *_pods(3))
    assert len(_bound(writes)) == 2
    assert _group_conditions(writes) == {"gang": ("True", "Scheduled", "")}
    assert _pod_messages(writes) == {"gang-2": "0/2 nodes are available: 2 Insufficient cpu."}


def test_basic_group_of_which_nothing_fits_says_so() -> None:
    """Without room for a single pod a basic group is Unschedulable with minCount 1."""
    writes = _look(*_nodes(2, cpu="2"), _group(min_count=None), *_pods(2))
    status, reason, message = _group_conditions(writes)["gang"]
    assert (status, reason) == ("False", "Unschedulable")
    assert "minCount (1) cannot be satisfied: 0 scheduled, 0 remaining" in message


def test_pods_above_min_count_that_do_not_fit_stay_pending() -> None:
    """A gang of four with minCount two places three; the fourth is Unschedulable on its own."""
    writes = _look(*_nodes(3), _group(min_count=2), *_pods(4))
    assert len(_bound(writes)) == 3
    assert _group_conditions(writes) == {"gang": ("True", "Scheduled", "")}
    assert list(_pod_messages(writes)) == ["gang-3"]


def test_condition_true_is_never_taken_back() -> None:
    """A restarted gang that no longer fits keeps True; only its pods say Unschedulable."""
    placed = changed(
        _group(),
        conditions=[{"type": INITIALLY_SCHEDULED, "status": "True", "reason": "Scheduled", "message": ""}],
    )
    writes = _look(*_nodes(2), placed, *_pods(3))
    assert _bound(writes) == {}
    assert _group_conditions(writes) == {}
    assert len(_pod_messages(writes)) == 3


def test_priority_that_differs_from_the_group_is_an_error() -> None:
    """Pods of another priority than their group: SchedulerError with the real words, nothing bound."""
    writes = _look(*_nodes(3), _group(), *_pods(3, priority=1000))
    message = (
        "all pods in a single pod group should have the same priority as the pod group's priority, "
        "got 1000 and 0"
    )
    assert _bound(writes) == {}
    assert _group_conditions(writes) == {"gang": ("False", "SchedulerError", message)}
    assert set(_pod_messages(writes).values()) == {message}


def test_scheduled_member_of_another_scheduler_is_an_error() -> None:
    """A bound member that another scheduler placed blocks the group."""
    stranger = merge(_pod("old", cpu="1", schedulerName="other"), {"spec": {"nodeName": "node-3"}})
    writes = _look(*_nodes(3), _group(), *_pods(2), stranger)
    assert 'got: "other" and "default-scheduler"' in _group_conditions(writes)["gang"][2]


def test_two_gangs_that_each_need_everything_do_not_share() -> None:
    """Of two gangs that each fill the cluster the older is placed whole, the other not at all."""
    first, second = _pods(3, "one"), _pods(3, "two")
    for pod in second:
        pod["metadata"]["creationTimestamp"] = "2027-01-15T08:00:01Z"
    writes = _look(*_nodes(3), _group("one"), _group("two"), *second, *first)
    assert sorted(_bound(writes)) == ["one-0", "one-1", "one-2"]
    assert _group_conditions(writes)["two"][1] == "Unschedulable"


def test_higher_priority_goes_first() -> None:
    """Priority comes before age, for groups and for ordinary pods alike."""
    urgent = merge(
        _pod("urgent", group="", priority=10), {"metadata": {"creationTimestamp": "2028-01-01T00:00:00Z"}}
    )
    writes = _look(*_nodes(1), _group(min_count=1), *_pods(1), urgent)
    assert _bound(writes) == {"urgent": "node-1"}
    gang = [_group(min_count=1, priority=10), *_pods(1, priority=10)]
    assert _bound(_look(*_nodes(1), *gang, _pod("a-old", group=""))) == {"gang-0": "node-1"}


def _racks() -> list[Object]:
    """Two racks of two nodes, the first with less room."""
    label = "topology.kubernetes.io/rack"
    return [
        node(f"node-{rack}{index}", cpu=cpu, labels={label: rack})
        for rack, cpu in (("a", "2"), ("b", "8"))
        for index in (1, 2)
    ]


TOPOLOGY = {"topology": [{"key": "topology.kubernetes.io/rack"}]}


def test_topology_constraint_keeps_a_gang_in_one_domain() -> None:
    """All pods go to the rack that holds them all, although others have room for some."""
    writes = _look(*_racks(), _group(min_count=2, schedulingConstraints=TOPOLOGY), *_pods(2))
    assert sorted(_bound(writes).values()) == ["node-b1", "node-b2"]
    too_many = _look(*_racks(), _group(min_count=3, schedulingConstraints=TOPOLOGY), *_pods(3))
    assert "0/2 placements are available" in _group_conditions(too_many)["gang"][2]


def test_topology_domain_is_pinned_by_pods_already_placed() -> None:
    """A replacement goes to the rack where the rest of its gang is, or nowhere."""
    placed = merge(_pod("old", cpu="1"), {"spec": {"nodeName": "node-a1"}})
    group = _group(min_count=2, schedulingConstraints=TOPOLOGY)
    assert _bound(_look(*_racks(), group, placed, _pod("new", cpu="1"))) == {"new": "node-a2"}
    assert _bound(_look(*_racks(), group, placed, _pod("new", cpu="6"))) == {}


def _tree(min_groups: int, *, constraints: Object | None = None) -> list[Object]:
    child: Object = {"parentCompositePodGroupName": "root"}
    if constraints:
        child["schedulingConstraints"] = constraints
    return [_composite("root", min_groups), _group("left", 2, **child), _group("right", 2, **child)]


def test_composite_gang_is_placed_whole() -> None:
    """A root gang of two groups places both, each within its rack, in one cycle."""
    items = [*_tree(2, constraints=TOPOLOGY), *_pods(2, "left", cpu="1"), *_pods(2, "right", cpu="6")]
    writes = _look(*_racks(), *items)
    assert len(_bound(writes)) == 4
    racks = {name: where[-2] for name, where in _bound(writes).items()}
    assert racks["left-0"] == racks["left-1"]
    assert racks["right-0"] == racks["right-1"] == "b"
    assert {condition[:2] for condition in _group_conditions(writes).values()} == {("True", "Scheduled")}


def test_composite_gang_places_nothing_when_one_child_does_not_fit() -> None:
    """Where the second group has no room the first is not placed either."""
    items = [*_tree(2), *_pods(2, "left"), *_pods(2, "right", cpu="7")]
    writes = _look(*_nodes(2), *items)
    assert _bound(writes) == {}
    assert {condition[:2] for condition in _group_conditions(writes).values()} == {("False", "Unschedulable")}


def test_composite_that_needs_one_child_places_the_one_that_fits() -> None:
    """With minGroupCount 1 the group that fits is bound and the other says why it is not."""
    items = [*_tree(1), *_pods(2, "left"), *_pods(2, "right", cpu="7")]
    writes = _look(*_nodes(2), *items)
    assert sorted(_bound(writes)) == ["left-0", "left-1"]
    conditions = _group_conditions(writes)
    assert conditions["left"][0] == "True"
    assert conditions["right"][:2] == ("False", "Unschedulable")


def test_one_gated_pod_holds_back_the_whole_tree() -> None:
    """A gate in one group keeps the other groups of its tree waiting too."""
    gated = _pod("right-1", "right", schedulingGates=[GATE])
    items = [*_tree(1), *_pods(2, "left"), _pod("right-0", "right"), gated]
    assert _look(*_nodes(4), *items) == ()


def test_trees_nest() -> None:
    """A composite below a composite is placed in the same cycle."""
    items = [
        _composite("root", 1),
        _composite("middle", 1, parentCompositePodGroupName="root"),
        _group("leaf", 2, parentCompositePodGroupName="middle"),
        *_pods(2, "leaf"),
    ]
    assert sorted(_bound(_look(*_nodes(2), *items))) == ["leaf-0", "leaf-1"]


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}}, "didn't match Pod's node affinity/selector", id="a selector"
        ),
        pytest.param({"cpu": "9"}, "Insufficient cpu", id="too little CPU"),
    ],
)
def test_ordinary_pod_that_fits_nowhere_says_why(spec: Object, why: str) -> None:
    """A pod without a group is scheduled alone, with the scheduler's reasons."""
    writes = _look(*_nodes(2), _pod("alone", group="", **spec))
    assert why in _pod_messages(writes)["alone"]
    assert any(isinstance(write, RecordEvent) and write.reason == "FailedScheduling" for write in writes)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"spec": {"unschedulable": True}}, id="a cordoned node takes no pod"),
        pytest.param(
            {"spec": {"taints": [{"key": "busy", "effect": "NoSchedule"}]}}, id="nor does a tainted one"
        ),
        pytest.param({"status": {"allocatable": {"pods": "0"}}}, id="nor one that is full of pods"),
    ],
)
def test_nodes_that_take_no_pod(broken: Object) -> None:
    """What keeps pods off a node; a toleration lets them on where it is a taint."""
    closed = merge(_nodes(1)[0], broken)
    assert _bound(_look(closed, _pod("alone", group=""))) == {}
    tolerant = _pod("alone", group="", tolerations=[{"key": "busy", "operator": "Exists"}])
    tainted = "taints" in broken.get("spec", {})
    assert bool(_bound(_look(closed, tolerant))) is tainted


def test_devices_count() -> None:
    """Extended resources are filled up like CPU, limits counting as requests."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 2}}}
    pods = [_pod(f"gpu-{index}", group="", containers=[container]) for index in range(3)]
    assert len(_bound(_look(*_nodes(1, gpu=4), *pods))) == 2


def test_a_loaded_pod_without_a_preemption_policy_has_the_default_one() -> None:
    """It skipped admission, so no default was filled in; beside a pod that never preempts it is reported."""
    pods = [_pod("gang-0", preemptionPolicy="Never"), _pod("gang-1")]
    _, _, message = _group_conditions(_look(_group(min_count=2), *pods, *_nodes(2)))["gang"]
    assert "same preemption policy, got PreemptLowerPriority and Never" in message
