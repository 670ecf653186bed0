"""Functions served by waitress: in a container image of a step of one's own, and in the local stack.

python -m muster.runtime.serve functions/create_workload/function/step.py --port 8080
python -m muster.runtime.serve functions/*/function/step.py muster.runtime.dead_letter --port 8080
"""

from __future__ import annotations

import argparse
import runpy
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from muster.objects.text import printable
from muster.runtime import config, dead_letter
from muster.runtime.http.waitress_server import LimitedServer
from muster.runtime.served import ServedFunctions, prepare_process
from muster.runtime.step import Step
from muster.runtime.telemetry import logs


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or Ctrl-C, then wait for the events in work."""
    parser = argparse.ArgumentParser(
        prog="python -m muster.runtime.serve",
        description="Serve a step over HTTP at /, or several, each at /NAME.",
    )
    parser.add_argument(
        "code", nargs="+", help="the path of a step.py, or the module muster.runtime.dead_letter"
    )
    parser.add_argument("--host", default="127.0.0.1", help="default: this machine only")
    parser.add_argument("--port", type=int, default=8080, help="0: any free port, which is printed")
    options = parser.parse_args(arguments)
    files = [code for code in options.code if code != dead_letter.__name__]
    for file in files:
        if not Path(file).is_file():
            parser.error(f"there is no file {file}")
    try:
        settings = config.from_environment()
        steps = [_step_of(file) for file in files]
        served = ServedFunctions.connected(steps, settings, dead_letters=dead_letter.__name__ in options.code)
    except config.BadSettingError as error:
        parser.exit(2, f"{printable(str(error))}\n")
    prepare_process()
    logs.configure(settings.log_level)
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.create_server((options.host, options.port), family=family)
    server = LimitedServer(served.app, settings, listener)
    signal.signal(signal.SIGTERM, _interrupt)
    address = f"http://{options.host}:{server.effective_port}"
    print(f"{served.name} listens on {address}", flush=True)  # noqa: T201 - the starting process waits for this line
    served.last_known()  # begins the check before the first probe, so that problems are logged at once
    server.run()
    served.wait_until_idle()
    return 0


def _step_of(path: str) -> Step:
    """Return the `STEP` of a file."""
    step: Step = runpy.run_path(path)["STEP"]
    return step


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    """End waitress's loop as Ctrl-C does.

    Events in work are finished; if an answer is lost, the event is delivered again and needs no write.
    """
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
