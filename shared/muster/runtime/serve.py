"""Functions served by waitress: the command of the container image, and on one machine.

python -m muster.runtime.serve create-workload
python -m muster.runtime.serve create-workload patch-pods dead-letter --port 8080
python -m muster.runtime.serve my_step/function/step.py
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, Self

import waitress

from muster.runtime import config, dead_letter, steps
from muster.runtime.config import Settings
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.handle import Handler
from muster.runtime.http.app import Receiver, State, app_of, path_of, wall_clock
from muster.runtime.http.readiness import Readiness
from muster.runtime.http.responses import BODY_LIMIT
from muster.runtime.step import Step
from muster.runtime.telemetry import logs

LARGEST_BODY = 4 * BODY_LIMIT
"""Bytes of a body that waitress reads, so that Flask can refuse it with a reason and a log line."""


class Functions:
    """The functions of one process: each at a path of its own, a single one also at `/`."""

    def __init__(self, *receivers: Receiver) -> None:
        self._receivers = receivers
        self._readiness = {receiver.name: Readiness(receiver) for receiver in receivers}
        self.name = receivers[0].name if len(receivers) == 1 else "muster"
        self.settings = receivers[0].settings
        self.app = app_of(receivers, self.last_known)

    @classmethod
    def connected(cls, steps: Sequence[Step | None], settings: Settings) -> Self:
        """Return the functions of steps, connected to the configured cluster; None keeps dead letters."""
        made = cls(*(_receiver(step, settings) for step in steps))
        made.last_known()  # begins the check before the first probe, so that problems are logged at once
        return made

    def last_known(self) -> State:
        """Return whether all functions are ready, at once, and what each of them lacks."""
        states = {name: readiness.last_known() for name, readiness in self._readiness.items()}
        lacks = [f"{path_of(name)}: {message}" for name, (_, message) in states.items() if message != "OK"]
        return all(ready for ready, _ in states.values()), "; ".join(lacks) or "OK"

    def wait_until_idle(self) -> None:
        """Wait until no event is in work, at most until the deadline of an event that has just begun."""
        end = time.monotonic() + self.settings.deadline_seconds
        for receiver in self._receivers:
            receiver.in_flight.wait_until_none(max(0.0, end - time.monotonic()))


def _receiver(step: Step | None, settings: Settings) -> Receiver:
    if step is None:
        return DeadLetters(config.connect(settings, dead_letter.MANAGER), settings, wall_clock)
    return Handler(step, config.connect(settings, step.manager), settings, wall_clock)


def server_of(app: Any, threads: int, **listening: Any) -> Any:
    """Return a waitress server that listens as asked: `listen="127.0.0.1:8080"`, or `sockets=[listener]`."""
    return waitress.create_server(
        app,
        threads=threads,
        max_request_body_size=LARGEST_BODY,
        inbuf_overflow=LARGEST_BODY,  # a function's file system is read-only
        ident="muster",
        **listening,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C, then wait for the events in work."""
    letters = path_of(dead_letter.NAME)
    names = ", ".join([*map(path_of, steps.step_names()), letters])
    parser = argparse.ArgumentParser(
        prog="python -m muster.runtime.serve",
        description="Serve a function over HTTP at /, or several, each at /NAME.",
    )
    parser.add_argument("function", nargs="+", help=f"{names}, or the path of a step.py")
    parser.add_argument("--host", default="127.0.0.1", help="default: this machine only; *: every address")
    parser.add_argument("--port", type=int, default=8080, help="0: any free port, which is printed")
    options = parser.parse_args(arguments)
    try:
        chosen = [
            None if name == letters else steps.find_step(name) for name in dict.fromkeys(options.function)
        ]
        settings = config.from_environment()
        functions = Functions.connected(chosen, settings)
    except (config.BadSettingError, LookupError) as error:
        parser.exit(2, f"{error.args[0]}\n")
    logs.configure(settings.log_level)
    server = server_of(functions.app, settings.threads, listen=f"{options.host}:{options.port}")
    signal.signal(signal.SIGTERM, _interrupt)
    port = options.port or server.effective_port
    # The starting process waits for this line.
    print(f"{functions.name} listens on http://{options.host}:{port}", flush=True)  # noqa: T201
    server.run()
    functions.wait_until_idle()
    return 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
