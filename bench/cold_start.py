"""From the start of a process to its first answered event, on a real kube-apiserver.

Each function is laid out as in its image and started by the image's command; its first event is one on which
it acts. Beside it: an empty function behind the same server, the floor (a server of the standard library that
makes one create call by urllib3). Bytecode is compiled, files are in the page cache.
"""

from __future__ import annotations

import http.client
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.control_plane import ControlPlane, control_plane
from bench.figures import Environment, Figure, Goal, Measure, in_turns, samples
from bench.gangs import STAGES, Event, prepare
from bench.subjects import PATIENCE, PEERS, floor, running
from bench.warm_step import Batch, record
from tests.cluster.processes import free_ports
from tests.support import containerfile

ROUNDS = 7
FLOOR, EMPTY = "floor", "empty func"
PYTHON = Path(sys.executable)


@dataclass(frozen=True)
class Start:
    """One start of a process: seconds until the first answer, and seconds of CPU that it used by then."""

    seconds: float
    cpu: float


@dataclass(frozen=True)
class Image:
    """A function in the folder that is laid out as the image.

    Attributes:
        step: the function.
        folder: the files of the image, with compiled bytecode.
    """

    step: str
    folder: Path

    @classmethod
    def laid_out(cls, folder: Path) -> dict[str, Image]:
        """Copy and compile what the Containerfile copies and compiles; the functions by name."""
        containerfile.lay_out(folder)
        _, compileall = containerfile.of_word("RUN")
        containerfile.run(compileall, folder, PYTHON.parent)
        return {step: cls(step, folder) for step in STAGES}

    @property
    def command(self) -> list[str]:
        """The command of the function's container, with this interpreter."""
        (instruction,) = containerfile.of_word("ENTRYPOINT")
        return [str(PYTHON), *instruction.command[1:], self.step.replace("_", "-")]


def measure() -> Figure:
    """Return start times and CPU times."""
    environment = Environment.now()
    with control_plane() as plane, TemporaryDirectory() as name:
        images = Image.laid_out(Path(name))
        subjects: dict[str, Callable[[], Start]] = {FLOOR: _floor(plane), EMPTY: _empty(plane)}
        subjects |= {step: _function(plane, image) for step, image in images.items()}
        starts = in_turns(subjects, ROUNDS)
    return Figure(
        name="cold-start",
        title="Cold start",
        description=" ".join((__doc__ or "").split()),
        environment=environment,
        measures=tuple(_start_measures(starts)),
    )


def _function(plane: ControlPlane, image: Image) -> Callable[[], Start]:
    stage = STAGES[image.step]
    events = iter([stage.event(gang) for gang in prepare(plane, stage, ROUNDS)])
    kubeconfig = str(plane.kubeconfig(image.step))

    def start() -> Start:
        environment = {"KUBECONFIG": kubeconfig}
        return _until_answered(plane, image.command, environment, next(events), image.folder)

    return start


def _floor(plane: ControlPlane) -> Callable[[], Start]:
    batch = Batch.prepared(plane, STAGES["create_workload"], ROUNDS)
    calls = record(plane, "create_workload").without_reads().calls_of(batch)
    command, environment = floor(plane, "create_workload", calls)
    events = iter(batch.acts)
    return lambda: _until_answered(plane, command, environment, next(events))


def _empty(plane: ControlPlane) -> Callable[[], Start]:
    stage = STAGES["create_workload"]
    (gang,) = prepare(plane, stage, 1)
    command = [str(PYTHON), str(PEERS / "empty_func.py")]
    return lambda: _until_answered(plane, command, {}, stage.event(gang))


def _until_answered(
    plane: ControlPlane,
    command: Sequence[str],
    environment: Mapping[str, str],
    event: Event,
    folder: Path = PEERS,
) -> Start:
    """Start a process and send it an event as soon as it listens."""
    (port,) = free_ports(1)
    listening = {"LISTEN_ADDRESS": f"127.0.0.1:{port}", "PORT": str(port), "PYTHONPATH": ""}
    log = plane.new_file("start.log")
    began = time.perf_counter()
    with running(command, log, {**environment, **listening}, folder) as subject:
        while time.perf_counter() < began + PATIENCE:
            status = _status(port, event)
            if status:
                start = Start(time.perf_counter() - began, subject.cpu())
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


def _start_measures(starts: Mapping[str, Sequence[Start]]) -> Iterator[Measure]:
    goals = tuple(Goal(step, 2, FLOOR) for step in STAGES)
    yield Measure(
        "to the first answer", "s", samples(starts, lambda start: start.seconds), "Starts", FLOOR, goals=goals
    )
    yield Measure("CPU until then", "s", samples(starts, lambda start: start.cpu), "Starts", FLOOR)
