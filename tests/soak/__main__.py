"""Attack every function behind both servers for minutes, and compare memory and file handles over time.

python -m tests.soak --minutes 10

Per round each function gets generated requests, idle connections and bodies that stop in the middle. Exits
with 1 if the memory or the file handles of a function grew after the first third of the rounds.
"""

from __future__ import annotations

import argparse
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, given, seed, settings

from functions import stage
from muster import steps
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support.raw_requests import STREAMS
from tests.unit.runtime.fakes import an_event
from tests.unit.runtime.http.servers import post, status

ROOT = Path(__file__).parents[2]
FUNCTIONS = [*steps.step_names(), "dead_letter"]
SERVED_BY_FUNC = "from func_python.http import serve; from function import new; serve(new)"
REQUESTS = 50
"""Generated requests for each function in a round."""
IDLE = 30
"""Connections of a round without a request, and as many with too short a body."""
MEBIBYTES_MORE = 8
"""Memory that may be added after the first third: what Python keeps for the largest body so far."""
HANDLES_MORE = 2
SECONDS_TO_CLOSE = 7.0
"""MUSTER_BODY_SECONDS, and a little more."""


@dataclass
class Attacked:
    """A function's process, with its memory (MiB) and file handles after each round."""

    name: str
    port: int
    process: subprocess.Popen[bytes]
    memory: list[int] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)

    def connect(self) -> socket.socket:
        """A new connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def alive(self) -> bool:
        """Whether its liveness probe succeeds."""
        with suppress(OSError), self.connect() as connection:
            connection.sendall(b"GET /health/liveness HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return status(connection.recv(4096)) == 200
        return False

    def measure(self) -> None:
        """Remember its memory and file handles, once it has closed the connections of the round."""
        end = time.monotonic() + SECONDS_TO_CLOSE
        while self.handles and self._open_handles() > self.handles[0] and time.monotonic() < end:
            time.sleep(0.1)
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        self.memory.append(pages * os.sysconf("SC_PAGE_SIZE") >> 20)
        self.handles.append(self._open_handles())

    def _open_handles(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def is_flat(self) -> bool:
        """Whether neither grew after the first third of the rounds."""
        third = len(self.memory) // 3
        memory, handles = max(self.memory[: third + 1]), max(self.handles[: third + 1])
        return self.memory[-1] <= memory + MEBIBYTES_MORE and self.handles[-1] <= handles + HANDLES_MORE


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack the functions behind each server for half of the time, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--functions", nargs="*", default=FUNCTIONS, choices=FUNCTIONS)
    options = parser.parse_args(arguments)
    flat = True
    with tempfile.TemporaryDirectory(prefix="muster-soak-") as folder:
        for server in ("waitress", "func"):
            with attacked(server, options.functions, Path(folder)) as functions:
                rounds = attack(functions, options.minutes * 30)
                for function in functions:
                    flat &= function.is_flat()
                    print(line(server, function, rounds), flush=True)  # noqa: T201 - the result
    return 0 if flat else 1


def line(server: str, function: Attacked, rounds: int) -> str:
    """The row of a function: memory and handles after the first round, after a third, and at the end."""
    third = len(function.memory) // 3
    memory = " -> ".join(str(function.memory[at]) for at in (0, third, -1))
    handles = " -> ".join(str(function.handles[at]) for at in (0, third, -1))
    growth = "flat" if function.is_flat() else "GREW"
    requests = rounds * REQUESTS
    return (
        f"{server:<9} {function.name:<18} {requests:>7} requests  {memory} MiB  {handles} handles  {growth}"
    )


def attack(functions: list[Attacked], seconds: float) -> int:
    """Attack until the time is over, at least three rounds; the number of rounds."""
    end = time.monotonic() + seconds
    for number in itertools.count(1):
        for function in functions:
            with ExitStack() as open_connections:
                for _ in range(IDLE):
                    open_connections.enter_context(function.connect())
                    slow = open_connections.enter_context(function.connect())
                    slow.sendall(post(an_event()[0], b"{" * 100, length=100_000))
                send_generated(function, number)
            if not function.alive():
                raise SystemExit(f"{function.name} does not answer after round {number}")
        time.sleep(0.2)  # until what was closed here is closed there
        for function in functions:
            function.measure()
        if time.monotonic() > end and number >= 3:
            return number
    raise AssertionError("unreachable")


def send_generated(function: Attacked, number: int) -> None:
    """Send the generated requests of a round; every one must be answered or its connection be closed."""

    @seed(number)
    @settings(max_examples=REQUESTS, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(stream=STREAMS)
    def send(stream: bytes) -> None:
        with function.connect() as connection:
            try:
                connection.sendall(stream)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except TimeoutError:
                raise
            except OSError:
                pass  # closed before everything was read

    send()


@contextmanager
def attacked(server: str, names: Sequence[str], folder: Path) -> Iterator[list[Attacked]]:
    """The functions as processes behind a server, with an API server behind them."""
    with ApiServer() as api, ExitStack() as stack:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "muster-system"}}
        api.load([*resource_definitions(), namespace])
        functions = []
        for name in names:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            log = stack.enter_context((folder / f"{server}-{name}.log").open("wb"))
            environment = {**os.environ, "MUSTER_API_SERVER": api.url, "MUSTER_SWEEP_JITTER_SECONDS": "0"}
            command = served_by_func(name, port, folder, environment) if server == "func" else [
                "-m", "muster.runtime.serve", code_of(name), "--port", str(port)
            ]  # fmt: skip
            process = subprocess.Popen(
                [sys.executable, *command], cwd=ROOT, env=environment, stdout=log, stderr=log
            )
            stack.callback(process.wait)
            stack.callback(process.terminate)
            functions.append(Attacked(name, port, process))
        end = time.monotonic() + 60
        while not all(function.alive() for function in functions):
            if time.monotonic() > end:
                raise SystemExit(f"a function did not start, see {folder}")
            time.sleep(0.2)
        yield functions


def code_of(name: str) -> str:
    """What `muster.runtime.serve` serves as this function."""
    return "muster.runtime.dead_letter" if name == "dead_letter" else f"functions/{name}/function/step.py"


def served_by_func(name: str, port: int, folder: Path, environment: dict[str, str]) -> list[str]:
    """The command of func's middleware for a staged function; its environment is added."""
    stage.stage(ROOT / "functions" / name, folder / name)
    environment |= {"PYTHONPATH": str(folder / name), "LISTEN_ADDRESS": f"127.0.0.1:{port}"}
    return ["-c", SERVED_BY_FUNC]


if __name__ == "__main__":
    sys.exit(main())
