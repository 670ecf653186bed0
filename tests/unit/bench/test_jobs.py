"""The figure `jobs`: what its tables say of the rounds."""

from __future__ import annotations

from collections.abc import Sequence

from bench import jobs
from bench.audit import Request
from bench.figures import Measure
from bench.stages import Cost, deliveries
from bench.turns import Round

EXPOSITION = """# HELP muster_events_total Events answered.
# TYPE muster_events_total counter
muster_events_total{function="patch_pods",kind="Pod",outcome="written",reason="",type="add"} 4.0
muster_events_total{function="patch_pods",kind="PodGroup",outcome="nothing",reason="",type="update"} 2.0
muster_events_total{function="resize_gang",kind="Job",outcome="nothing",reason="",type="update"} 3.0
# TYPE muster_events_created gauge
muster_events_created{function="patch_pods"} 1.7e+09
"""


def a_round(delays: Sequence[float], requests: Sequence[str] = (), **cpu: float) -> Round:
    """A round of owners with these delays, requests and CPU seconds."""
    asked = [Request("anyone", verb, kind, 200, 0.0) for verb, kind in map(str.split, requests)]
    return Round(len(delays), delays, max(delays), Cost(asked, cpu, {"patch_pods": 3.0 * len(delays)}, {}, 0))


def by_name(measures: Sequence[Measure]) -> dict[str, Measure]:
    """The measures of a group by name."""
    return {measure.name: measure for measure in measures}


def test_delays_one_at_a_time_are_compared_one_by_one() -> None:
    """In milliseconds, beside the subject of the goal."""
    rounds = {"in-tree": [a_round([0.1, 0.2])], "Muster": [a_round([0.2, 0.2])]}
    measure = by_name(list(jobs._alone("alone", rounds, "in-tree")))["created to last pod bound"]
    assert measure.samples == {"in-tree": (100, 200), "Muster": (200, 200)}
    assert [measure.reached(goal) for goal in measure.goals] == [1.5]


def test_a_burst_has_one_sample_per_round() -> None:
    """Its median and its end."""
    rounds = {"in-tree": [a_round([1, 2, 6])] * 2, "Muster": [a_round([2, 4, 9]), a_round([2, 5, 9])]}
    measures = by_name(list(jobs._burst("burst", rounds)))
    assert measures["created to last pod bound, median of the Jobs"].samples["Muster"] == (4, 5)
    assert measures["until all are bound"].samples == {"in-tree": (6, 6), "Muster": (9, 9)}


def test_requests_are_per_owner() -> None:
    """All, then each, those that Muster sends most first; seldom ones are left out."""
    often, once = ["get jobs"] * 6, ["list nodes"]
    rounds = {"in-tree": [a_round([1] * 40, often)], "Muster": [a_round([1] * 40, [*often, *often, *once])]}
    measures = list(jobs._requests("requests", rounds))
    assert [measure.name for measure in measures] == ["all", "get jobs"]
    assert measures[0].samples == {"in-tree": (0.15,), "Muster": (0.325,)}
    assert measures[1].samples == {"in-tree": (0.15,), "Muster": (0.3,)}


def test_cpu_time_is_per_owner_and_process() -> None:
    """A process that a subject does not have takes nothing."""
    rounds = {"in-tree": [a_round([1, 1], etcd=0.5)], "Muster": [a_round([1, 1], etcd=0.5, broker=0.1)]}
    measures = by_name(list(jobs._cpu("cpu", rounds)))
    assert measures["all processes"].samples == {"in-tree": (250,), "Muster": (300,)}
    assert measures["broker"].samples == {"in-tree": (0,), "Muster": (50,)}


def test_deliveries_are_counted_by_function() -> None:
    """Those that changed nothing too."""
    assert deliveries(EXPOSITION) == {"patch_pods": 6, "resize_gang": 3}
    rounds = {"Muster": [a_round([1, 1])]}
    assert by_name(list(jobs._deliveries("deliveries", rounds)))["patch_pods"].samples == {"Muster": (3,)}
