"""A step served by waitress: in a container image of its own, and in the local stack.

python -m muster.runtime.serve functions/create_workload/function/step.py --port 8080
python -m muster.runtime.serve muster.runtime.dead_letter --port 8080
"""

from __future__ import annotations

import argparse
import importlib
import runpy
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from waitress import create_server

from muster.runtime import config, dead_letter, logs
from muster.runtime.app import app_of, wall_clock
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.handle import Handler
from muster.runtime.readiness import Readiness
from muster.runtime.receiver import Receiver
from muster.runtime.step import Step

BODIES_IN_MEMORY = 64
"""Waitress keeps a body in memory up to this many times the body limit, and refuses larger ones without a log
line; it must not write to disk, because a function's root filesystem is read-only."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C, then wait for the events in work."""
    parser = argparse.ArgumentParser(
        prog="python -m muster.runtime.serve", description="Serve a step over HTTP."
    )
    parser.add_argument("code", help="the path of a step.py, or the module muster.runtime.dead_letter")
    parser.add_argument("--host", default="127.0.0.1", help="default: this machine only")
    parser.add_argument("--port", type=int, default=8080, help="0: any free port, which is printed")
    options = parser.parse_args(arguments)
    try:
        settings = config.from_environment()
        step = _step_of(options.code)
        cluster = config.connect(settings, user_agent=step.manager if step else dead_letter.MANAGER)
    except config.BadSettingError as error:
        parser.exit(2, f"{error}\n")
    logs.configure(settings.log_level)
    handler: Receiver = (
        Handler(step, cluster, settings, wall_clock) if step else DeadLetters(cluster, settings, wall_clock)
    )
    readiness = Readiness.of(handler, cluster)
    largest = BODIES_IN_MEMORY * settings.body_limit_bytes
    server = create_server(
        app_of(handler, readiness),
        host=options.host,
        port=options.port,
        threads=settings.threads,
        max_request_body_size=largest,
        inbuf_overflow=largest,
        ident="muster",
    )
    signal.signal(signal.SIGTERM, _interrupt)
    address = f"http://{options.host}:{server.effective_port}"
    print(f"{handler.name} listens on {address}", flush=True)  # noqa: T201 - the starting process waits for this line
    readiness.last_known()  # begins the check before the first probe, so that problems are logged at once
    server.run()
    handler.in_flight.wait_until_none(settings.deadline_seconds)
    return 0


def _step_of(code: str) -> Step | None:
    """The `STEP` of a file; None for a module, which is the store of dead letters."""
    if not code.endswith(".py"):
        importlib.import_module(code)
        return None
    step: Step = runpy.run_path(code)["STEP"]
    return step


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End waitress's loop as Ctrl-C does.

    Events in work are finished; if an answer is lost, the event is delivered again and needs no write.
    """
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
