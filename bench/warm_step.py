"""Each function as a process on a real kube-apiserver, beside a floor that only makes the same API calls.

The floor is a server of the standard library. A proxy records the calls that the function makes for an event,
and the floor sends the same ones by urllib3, with the names of another gang; a second floor sends only the
writes among them. Gangs have four pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import urllib3

from bench.calls import Call, RecordingProxy, aimed, recording
from bench.control_plane import ControlPlane, control_plane
from bench.figures import Environment, Figure, Goal, Measure, in_turns, progress, samples
from bench.gangs import STAGES, Event, Gang, Stage, prepare
from bench.subjects import Sender, Subject, cpu_per_event, floor, function, running
from tests.cluster.processes import until

ROUNDS = 5
ONE_BY_ONE, AT_ONCE, TOGETHER = 12, 4, 20
"""Events of a round: those sent one after another; how many at once; those sent so."""
MUSTER, FLOOR, WRITES = "Muster", "floor", "writes alone"

QUANTITIES = {
    "one after another": "events/s",
    "four at once": "events/s",
    "CPU per event": "ms",
    "changes nothing, one after another": "events/s",
    "changes nothing, CPU per event": "ms",
    "nothing by the event alone, CPU per event": "ms",
    "resident memory": "MiB",
}
"""What is measured, and its unit. An event that changes nothing is one that came twice."""

GOALS: dict[str, tuple[Goal, ...]] = {
    "one after another": (Goal(MUSTER, 0.65, FLOOR, at_least=True),),
    "four at once": (Goal(MUSTER, 0.65, FLOOR, at_least=True),),
    "CPU per event": (Goal(MUSTER, 2, FLOOR),),
    "nothing by the event alone, CPU per event": (Goal(MUSTER, 1),),
    "resident memory": (Goal(MUSTER, 45),),
}
Round = dict[str, float]
"""The quantities that were measured in one round of one process, by name."""


@dataclass(frozen=True)
class Batch:
    """The events of one round of one process.

    Attributes:
        gangs: those that the events are about.
        acts: events on which the step acts.
        repeats: the same again.
        idle: events that show by themselves that there is nothing to do.
    """

    gangs: Sequence[Gang]
    acts: Sequence[Event]
    repeats: Sequence[Event]
    idle: Sequence[Event]

    @classmethod
    def prepared(cls, plane: ControlPlane, stage: Stage, size: int) -> Batch:
        """Bring gangs into the state of a step's event."""
        gangs = prepare(plane, stage, size)
        acts, repeats = ([stage.event(gang) for gang in gangs] for _ in range(2))
        return cls(gangs, acts, repeats, [stage.idle_event(gang) for gang in gangs])


@dataclass(frozen=True)
class Recorded:
    """The calls of a function for one gang, in the order of `Batch`'s kinds of events."""

    gang: Gang
    acts: Sequence[Call]
    repeats: Sequence[Call]
    idle: Sequence[Call]

    def without_reads(self) -> Recorded:
        """Return the writes alone."""
        kinds = (self.acts, self.repeats, self.idle)
        return Recorded(self.gang, *([call for call in calls if call.method != "GET"] for calls in kinds))

    def calls_of(self, batch: Batch) -> dict[str, list[Call]]:
        """Return the calls of each event of a batch, by its id."""
        kinds = ((self.acts, batch.acts), (self.repeats, batch.repeats), (self.idle, batch.idle))
        return {
            event.id: [aimed(call, self.gang.identifiers, gang.identifiers) for call in calls]
            for calls, events in kinds
            for event, gang in zip(events, batch.gangs, strict=True)
        }


class EventDriven:
    """A process that gets events, and those that are left for it.

    Args:
        subject: the process.
        batches: the first one warms the process up.
        acts: the status of its answer when it acts.
        idles: and when there is nothing to do.
    """

    def __init__(self, subject: Subject, batches: Sequence[Batch], acts: int, idles: int) -> None:
        url = subject.url()
        self._subject = subject
        self._batches = iter(batches)
        self._acts, self._idles = Sender(url, acts), Sender(url, idles)
        self._acts.rate(next(self._batches).acts)

    def round(self) -> Round:
        """Send the events of the next batch."""
        batch, measured = next(self._batches), Round()

        def act() -> None:
            measured["one after another"] = self._acts.rate(batch.acts[:ONE_BY_ONE])
            measured["four at once"] = self._acts.rate(batch.acts[ONE_BY_ONE:], AT_ONCE)

        def repeat() -> None:
            measured["changes nothing, one after another"] = self._idles.rate(batch.repeats)

        size = len(batch.gangs)
        measured["CPU per event"] = cpu_per_event(self._subject, size, act)
        measured["changes nothing, CPU per event"] = cpu_per_event(self._subject, size, repeat)
        measured["nothing by the event alone, CPU per event"] = cpu_per_event(
            self._subject, size, lambda: self._idles.rate(batch.idle)
        )
        measured["resident memory"] = self._subject.resident()
        return measured


def measure() -> Figure:
    """Return rates, CPU time and memory of each function and its floor."""
    environment = Environment.now()
    measures: list[Measure] = []
    with control_plane() as plane:
        for step in STAGES:
            progress(f"{step}: preparing gangs")
            measures += _measures(step, _rounds(plane, step))
    return Figure(
        name="warm-step",
        title="Warm steps",
        description=" ".join((__doc__ or "").split()),
        environment=environment,
        measures=tuple(measures),
    )


def record(plane: ControlPlane, step: str) -> Recorded:
    """Return the calls of a function for its second gang; at the first it discovers the API's versions."""
    stage, log = STAGES[step], plane.new_file(f"{step}-recorded.log")
    first, second = prepare(plane, stage, 2)
    with recording(plane.cluster.api.server, plane.cluster.credentials) as proxy:
        command, environment = function(step, plane.kubeconfig(step, proxy.url))
        with running(command, log, environment) as subject:
            url = subject.url()
            until(lambda: urllib3.request("GET", f"{url}/health/readiness").status == 200, 20)
            acts, idles = Sender(url, 200), Sender(url, 202)
            acts.send(stage.event(first))
            return Recorded(
                second,
                _calls(proxy, acts, stage.event(second)),
                _calls(proxy, idles, stage.event(second)),
                _calls(proxy, idles, stage.idle_event(second)),
            )


def _calls(proxy: RecordingProxy, sender: Sender, event: Event) -> list[Call]:
    proxy.calls.clear()
    sender.send(event)
    return list(proxy.calls)


def _rounds(plane: ControlPlane, step: str) -> dict[str, list[Round]]:
    """Measure a step and what it is compared with, in turns."""
    recorded = record(plane, step)
    with ExitStack() as stack:
        subjects: dict[str, EventDriven] = {
            FLOOR: _floor(plane, step, recorded, stack),
            WRITES: _floor(plane, step, recorded.without_reads(), stack),
            MUSTER: _function(plane, step, stack),
        }
        return in_turns({name: subject.round for name, subject in subjects.items()}, ROUNDS)


def _function(plane: ControlPlane, step: str, stack: ExitStack) -> EventDriven:
    command, environment = function(step, plane.kubeconfig(step))
    log = plane.new_file(f"{step}-measured.log")
    subject = stack.enter_context(running(command, log, environment))
    return EventDriven(subject, _batches(plane, step), 200, 202)


def _floor(plane: ControlPlane, step: str, recorded: Recorded, stack: ExitStack) -> EventDriven:
    batches = _batches(plane, step)
    calls = {event: made for batch in batches for event, made in recorded.calls_of(batch).items()}
    log = plane.new_file(f"{step}-floor.log")
    command, environment = floor(plane, step, calls)
    return EventDriven(stack.enter_context(running(command, log, environment)), batches, 204, 204)


def _batches(plane: ControlPlane, step: str) -> list[Batch]:
    """Prepare the batch that warms a process up, and one for each round."""
    sizes = (2, *[ONE_BY_ONE + TOGETHER] * ROUNDS)
    return [Batch.prepared(plane, STAGES[step], size) for size in sizes]


def _measures(step: str, rounds: dict[str, list[Round]]) -> Iterator[Measure]:
    for name, unit in QUANTITIES.items():
        measured = {subject: of_subject for subject, of_subject in rounds.items() if name in of_subject[0]}
        values = samples(measured, lambda one, name=name: one[name])  # type: ignore[misc]
        yield Measure(name, unit, values, step, FLOOR, goals=GOALS.get(name, ()))
