"""The requests of the functions to the API server, and the deliveries of the broker, in two stories.

The stories are those of `muster run`, on the local stack with its simulated controllers: a Job whose four
pods are a gang, and a TrainJob of three nodes, until they are scheduled and everything is quiet. Beside them
is the smallest set thinkable, with its reasons, from bench/smallest_calls.yaml. The counts of `make test`,
which are exact, are in tests/counts.yaml.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from bench.figures import Environment, Figure, Goal, Measure, in_turns, samples
from bench.subjects import FailedError
from muster.local.stack import Stack, StackOptions
from muster.local.stories import LocalStory, StoryRun, story_named
from muster.local.stories.watching import TimelineRecorder
from muster.simulator.broker import Report
from muster.steps import step_names

ROUNDS = 5
REST = 1.5
"""The simulated controllers write the status of Jobs once a second."""
SMALLEST = yaml.safe_load((Path(__file__).parent / "smallest_calls.yaml").read_text())
MUSTER, LEAST = "Muster", "smallest set"
MOST_DELIVERIES = Goal(MUSTER, 10)
"""Of a Job."""


@dataclass(frozen=True)
class Counts:
    """The requests by function, verb and resource, and the deliveries by trigger, of one run of a story."""

    requests: Mapping[tuple[str, str, str], int]
    deliveries: Mapping[str, int]

    def calls(self) -> Counter[str]:
        """Return the requests by verb and resource: `get jobs`."""
        counted: Counter[str] = Counter()
        for (_, verb, resource), count in self.requests.items():
            counted[f"{verb} {resource}"] += count
        return counted

    def calls_by_function(self) -> Counter[str]:
        """Return the requests by function."""
        counted: Counter[str] = Counter()
        for (function, _, _), count in self.requests.items():
            counted[function] += count
        return counted


class CountedStack:
    """A local stack that counts what a story costs."""

    def __init__(self, stack: Stack, recorder: TimelineRecorder, reports: list[Report]) -> None:
        self._stack = stack
        self._recorder = recorder
        self._reports = reports
        self._numbers = iter(range(10**6))

    def run(self, story: LocalStory) -> Counts:
        """Run a story in a namespace of its own."""
        assert self._stack.server is not None  # noqa: S101 - the stack has the embedded API server
        self._stack.server.forget_calls()
        self._reports.clear()
        own = replace(story, own_namespace=f"{story.name}-{next(self._numbers)}")
        run = StoryRun(own, self._stack.client, self._recorder)
        if not run.run():
            raise FailedError(f"{own.namespace}: {[check for check in run.checks if not check.passed]}")
        self._rest()
        agents = {f"muster-{name.replace('_', '-')}": name for name in step_names()}
        requests = {
            (agents[agent], verb, resource): count
            for (agent, verb, resource), count in self._stack.server.calls().items()
            if agent in agents
        }
        return Counts(requests, Counter(report.trigger for report in self._reports))

    def _rest(self) -> None:
        """Wait until nothing has been delivered for REST seconds."""
        seen = -1
        while seen < (now := len(self._reports)):
            seen = now
            self._stack.settle(20)
            time.sleep(REST)


def measure() -> Figure:
    """Return the counts of both stories beside the smallest ones."""
    environment = Environment.now()
    reports: list[Report] = []
    with Stack(StackOptions(), reporter=reports.append) as stack, TimelineRecorder(stack.client) as recorder:
        counted = CountedStack(stack, recorder, reports)
        stories = {name: story_named(name) for name in SMALLEST}
        counted.run(stories["indexed-job"])  # every function discovers the versions of the API once
        runs = {name: partial(counted.run, story) for name, story in stories.items()}
        counts = in_turns(runs, ROUNDS)
    measures = [
        measure
        for name, story in stories.items()
        for measure in _measures(story, counts[name], SMALLEST[name])
    ]
    return Figure(
        name="api-calls",
        title="API calls and deliveries",
        description=" ".join((__doc__ or "").split()),
        environment=environment,
        measures=tuple(measures),
    )


def _measures(story: LocalStory, counts: Sequence[Counts], smallest: Mapping[str, Any]) -> Iterator[Measure]:
    title = story.title[0].upper() + story.title[1:]
    yield from _rows(f"{title}: calls", [one.calls() for one in counts], smallest["calls"])
    yield from _rows(f"{title}: calls by function", [one.calls_by_function() for one in counts], {})
    yield from _rows(f"{title}: deliveries", [one.deliveries for one in counts], smallest["deliveries"])


def _rows(
    group: str, counts: Sequence[Mapping[str, int]], smallest: Mapping[str, tuple[int, str]]
) -> Iterator[Measure]:
    """One row for each name, and one for their sum."""
    for name in sorted({*smallest, *(name for one in counts for name in one)}):
        least, why = smallest.get(name, (0, ""))
        yield _row(name, group, [one.get(name, 0) for one in counts], least if smallest else None, why)
    least = sum(count for count, _ in smallest.values())
    yield _row("all", group, [sum(one.values()) for one in counts], least if smallest else None)


def _row(name: str, group: str, counts: Sequence[int], least: int | None, why: str = "") -> Measure:
    values = {MUSTER: counts} | ({} if least is None else {LEAST: [least] * len(counts)})
    goals = (MOST_DELIVERIES,) if name == "all" and group.endswith("deliveries") else ()
    return Measure(name, "", samples(values, float), group, note=why, goals=goals)
