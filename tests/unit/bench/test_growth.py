"""The figure `growth`: what one gang costs per pod."""

from __future__ import annotations

import pytest

from bench import growth
from bench.audit import MUSTER, Request
from bench.stages import Cost
from bench.turns import Round

POD = f"{MUSTER}patch-pods"
SCHEDULER = "system:kube-scheduler"
REQUESTS = [
    Request(POD, "list", "pods", 200, 100.0),
    Request(POD, "patch", "pods", 200, 101.0),
    Request(POD, "patch", "pods", 200, 102.0),
    Request(SCHEDULER, "create", "pods/binding", 201, 102.5),
    Request(SCHEDULER, "create", "pods/binding", 201, 104.5),
]


def the_gang() -> Round:
    """A gang of two pods, bound 5 seconds after it was created."""
    return Round(1, [5.0], 5.0, Cost(REQUESTS, {}, {"patch_pods": 3}, {"patch-pods": 50.0}, 0))


def named(name: str) -> dict[str, tuple[float, ...]]:
    """The samples of a measure of the gang beside itself."""
    measures = growth._gang(2, {"in-tree": [the_gang()], "Muster": [the_gang()]})
    return dict(next(measure for measure in measures if measure.name == name).samples)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("writes of Muster per pod", 1),
        ("reads of Muster per pod", 0.5),
        ("deliveries per pod", 1.5),
        ("bindings per second", 0.5),
        ("memory of the largest function", 50),
    ],
)
def test_costs_are_per_pod(name: str, value: float) -> None:
    """Of Muster's accounts only, where the name says so."""
    assert named(name)["Muster"] == (value,)


def test_the_last_gate_is_timed_against_the_last_binding() -> None:
    """Both are in the audit log: the last gate went 2.5 s before the last pod was bound."""
    assert named("created to last gate removed") == {"bound in-tree": (5,), "ungated": (2.5,)}


def test_the_smallest_comes_first() -> None:
    """So that something is measured if the time does not suffice for all."""
    sizes = growth.Settings(trainjobs=(100, 10), gangs=(5000, 100)).sizes
    assert [(size.owners, size.pods) for size in sizes] == [(10, 8), (1, 100), (100, 8), (1, 5000)]


def test_there_is_room_for_the_largest() -> None:
    """On nodes of 110 pods, and some to spare."""
    assert growth.nodes_for(5000) == 46 + growth.SPARE_NODES
    assert growth.nodes_for(8000) == 73 + growth.SPARE_NODES
