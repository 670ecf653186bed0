"""From the start of a process to its first answered event, on a real kube-apiserver.

Each function is laid out as in its image and started by the image's command; its first event is one on which
it acts. Beside it: an empty function behind func's server. Bytecode is compiled, files are in the page cache.
"""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figures import ROOT, Figure, Goal, Measure, in_turns, samples
from bench.gangs import STATES, ControlPlane, Event, control_plane, prepare
from bench.processes import PATIENCE, cpu_of, running
from tests.cluster.processes import free_ports
from tests.support import containerfile

ROUNDS = 7
EMPTY = "empty func"
PYTHON = Path(sys.executable)


@dataclass(frozen=True)
class Start:
    """One start of a process: seconds until the first answer, and seconds of CPU that it used by then."""

    seconds: float
    cpu: float


def measure() -> Figure:
    """Return start times and CPU times."""
    with control_plane() as plane, TemporaryDirectory() as name:
        image = Path(name)
        containerfile.lay_out(image)
        _, compileall = containerfile.of_word("RUN")
        containerfile.run(compileall, image, PYTHON.parent)
        subjects = {EMPTY: _empty(plane), **{step: _function(plane, step, image) for step in STATES}}
        starts = in_turns(subjects, ROUNDS)
    goals = [Goal(step, 2, EMPTY) for step in STATES]
    seconds, cpu = (samples(starts, value) for value in (lambda one: one.seconds, lambda one: one.cpu))
    measures = (
        Measure("to the first answer", "s", seconds, "Starts", goals),
        Measure("CPU until then", "s", cpu, "Starts"),
    )
    return Figure("cold-start", "Cold start", measures)


def _function(plane: ControlPlane, step: str, image: Path) -> Callable[[], Start]:
    events = iter([STATES[step].event(gang) for gang in prepare(plane, step, ROUNDS)])
    environment = {"KUBECONFIG": str(plane.kubeconfig(step))}
    (instruction,) = containerfile.of_word("ENTRYPOINT")
    command = [str(PYTHON), *instruction.command[1:], step.replace("_", "-"), "--port", "{port}"]
    return lambda: _until_answered(plane, command, environment, next(events), image)


def _empty(plane: ControlPlane) -> Callable[[], Start]:
    (gang,) = prepare(plane, "create_workload", 1)
    event = STATES["create_workload"].event(gang)
    command = [str(PYTHON), str(ROOT / "bench/empty_func.py")]
    return lambda: _until_answered(plane, command, {}, event, ROOT / "bench/results")


def _until_answered(
    plane: ControlPlane, command: Sequence[str], environment: Mapping[str, str], event: Event, folder: Path
) -> Start:
    """Start a process and send it an event as soon as it listens."""
    (port,) = free_ports(1)
    command = [word.format(port=port) for word in command]
    listening = {"LISTEN_ADDRESS": f"127.0.0.1:{port}", "PYTHONPATH": ""}
    began = time.perf_counter()
    with running(command, plane.new_file("start.log"), {**environment, **listening}, folder) as subject:
        while time.perf_counter() < began + PATIENCE:
            status = _status(port, event)
            if status:
                start = Start(time.perf_counter() - began, cpu_of(subject.process.pid))
                if status // 100 == 2:
                    return start
                raise subject.failed(f"answered {status}")
            time.sleep(0.001)
        raise subject.failed("gave no answer")


def _status(port: int, event: Event) -> int:
    """Return the status of the answer to an event; 0 if nothing listens yet."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", "/", event.body, dict(event.headers))
        return connection.getresponse().status
    except ConnectionError:
        return 0
    finally:
        connection.close()
