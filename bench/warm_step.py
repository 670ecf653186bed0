"""Each function as a process on a real kube-apiserver, with gangs of four pods.

An event that comes a second time changes nothing. Beside it: what the function reads for it, found in the API
server's audit log and sent by urllib3 (`reads alone`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import urllib3

from bench.figures import Figure, Goal, Measure, in_turns, progress, samples
from bench.gangs import STATES, ControlPlane, Event, control_plane, prepare
from bench.processes import Sender, Subject, cpu_of, memory_of, running
from muster.data import FUNCTIONS
from tests.cluster import audit

ROUNDS = 5
ONE_BY_ONE, AT_ONCE, TOGETHER = 12, 4, 20
"""Events of a round: those sent one after another; how many at once; those sent so."""
MUSTER, READS = "Muster", "reads alone"
SECOND, SECOND_CPU = "the second time, one after another", "the second time, CPU per event"
IDLE_CPU = "nothing to do by the event alone, CPU per event"

QUANTITIES: dict[str, tuple[str, tuple[Goal, ...]]] = {
    "one after another": ("events/s", ()),
    "four at once": ("events/s", ()),
    "CPU per event": ("ms", (Goal(MUSTER, 5),)),
    SECOND: ("events/s", (Goal(MUSTER, 0.5, READS, at_least=True),)),
    SECOND_CPU: ("ms", (Goal(MUSTER, 2.5, READS),)),
    IDLE_CPU: ("ms", (Goal(MUSTER, 0.6),)),
    "resident memory": ("MiB", (Goal(MUSTER, 64),)),
}
"""What is measured, its unit, and its goals."""
Round = dict[str, float]
"""The quantities that were measured in one round, by name."""


def measure() -> Figure:
    """Return rates, CPU time and memory of each function."""
    measures: list[Measure] = []
    with control_plane() as plane:
        for step in STATES:
            progress(f"{step}: preparing gangs")
            measures += _measures(step, _rounds(plane, step))
    return Figure("warm-step", "Warm steps", measures)


def _rounds(plane: ControlPlane, step: str) -> dict[str, list[Round]]:
    """Measure a step and its reads in turns."""
    sizes = (2, *[ONE_BY_ONE + TOGETHER] * ROUNDS)
    batches = iter([[STATES[step].event(gang) for gang in prepare(plane, step, size)] for size in sizes])
    code = FUNCTIONS / step / "function" / "step.py"
    command = [sys.executable, "-m", "muster.runtime.serve", str(code), "--port", "0"]
    environment = {"KUBECONFIG": str(plane.kubeconfig(step)), "MUSTER_API_SERVER": ""}
    with running(command, plane.new_file(f"{step}.log"), environment) as subject:
        sender = Sender(subject.url())
        sender.rate(next(batches))  # warms up
        reads: list[str] = []

        def function() -> Round:
            batch, measured = next(batches), Round()
            _act(subject, sender, batch, measured)
            offset = audit.size(plane.cluster.audit_log)
            _repeat(subject.process.pid, lambda: sender.rate(batch), len(batch), measured)
            before, deleted = cpu_of(subject.process.pid), [*map(_deleted, batch)]
            sender.rate(deleted)
            measured[IDLE_CPU] = (cpu_of(subject.process.pid) - before) / len(batch) * 1000
            measured["resident memory"] = memory_of(subject.process.pid, "VmRSS")
            reads[:] = _reads(plane, step, offset)
            return measured

        def reads_alone() -> Round:
            measured = Round()
            count = ONE_BY_ONE + TOGETHER
            _repeat(0, lambda: _send(plane, step, reads, count), count, measured)
            return measured

        return in_turns({MUSTER: function, READS: reads_alone}, ROUNDS)


def _deleted(event: Event) -> Event:
    """Return the event of a deletion, which no step looks at."""
    return Event({**event.headers, "Ce-Type": "dev.knative.apiserver.resource.delete"}, event.body)


def _act(subject: Subject, sender: Sender, batch: Sequence[Event], measured: Round) -> None:
    before = cpu_of(subject.process.pid)
    measured["one after another"] = sender.rate(batch[:ONE_BY_ONE])
    measured["four at once"] = sender.rate(batch[ONE_BY_ONE:], AT_ONCE)
    measured["CPU per event"] = (cpu_of(subject.process.pid) - before) / len(batch) * 1000


def _repeat(pid: int, act: Callable[[], float], count: int, measured: Round) -> None:
    """Measure events that change nothing, in another process or, for 0, in this one."""
    before = cpu_of(pid) if pid else time.process_time()
    measured[SECOND] = act()
    measured[SECOND_CPU] = ((cpu_of(pid) if pid else time.process_time()) - before) / count * 1000


def _reads(plane: ControlPlane, step: str, offset: int) -> list[str]:
    """Return the paths that a function has read since an offset of the audit log."""
    time.sleep(0.5)  # the log is written behind the answers
    account = f":{step.replace('_', '-')}"
    events = audit.events_since(plane.cluster.audit_log, offset)
    return [
        event["requestURI"]
        for event in events
        if event["user"]["username"].endswith(account) and event["verb"] in {"get", "list"}
    ]


def _send(plane: ControlPlane, step: str, reads: Sequence[str], count: int) -> float:
    """Send reads and parse their answers; return how many of `count` events' were answered per second."""
    authority = str(plane.cluster.credentials.certificate)
    pool = urllib3.connection_from_url(plane.cluster.api.server, ca_certs=authority, retries=False)
    headers = {"Authorization": f"Bearer {plane.token(step)}", "Accept": "application/json"}
    began = time.perf_counter()
    for path in reads:
        json.loads(pool.request("GET", path, headers=headers).data)
    return count / (time.perf_counter() - began)


def _measures(step: str, rounds: dict[str, list[Round]]) -> Iterator[Measure]:
    for name, (unit, goals) in QUANTITIES.items():
        measured = {subject: of_subject for subject, of_subject in rounds.items() if name in of_subject[0]}
        values = samples(measured, lambda one, name=name: one[name])  # type: ignore[misc]
        yield Measure(name, unit, values, step, goals)
