"""The functions on one machine: their Flask apps behind waitress, in threads here or as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from typing import IO, Protocol

from muster import steps
from muster.files import FUNCTIONS
from muster.local.serving import Served
from muster.replay.activity import Activity, Listening
from muster.runtime.app import app_of, wall_clock
from muster.runtime.config import Settings, connect
from muster.runtime.handle import Handler
from muster.runtime.readiness import Readiness

Listener = Callable[[Activity], None]


class FunctionDownError(Exception):
    """A function did not come up; the message says which, and what it said."""


class Functions(Protocol):
    """Functions that serve on this machine."""

    @property
    def urls(self) -> dict[str, str]:
        """Where each one is, by the name of its Service: `create-workload`."""
        ...

    def stop(self) -> None:
        """End them all."""
        ...


class InThreads:
    """Every function behind a waitress of its own, in threads of this process: up within milliseconds."""

    def __init__(self, services: Iterable[str], settings: Settings, listener: Listener) -> None:
        self.urls: dict[str, str] = {}
        self._stops = ExitStack()
        self._stops.enter_context(Listening(listener))
        for service in services:
            step = steps.step_named(service)
            cluster = connect(settings, user_agent=step.manager)
            handler = Handler(step, cluster, settings, wall_clock)
            server = Served(
                app_of(handler, Readiness.of(handler, cluster)), service, threads=settings.workers
            )
            self._stops.callback(server.stop)
            self.urls[service] = f"http://127.0.0.1:{server.port}"

    def stop(self) -> None:
        """End them all."""
        self._stops.close()


class AsProcesses:
    """Every function in a process of its own, as in containers; what it did is read from its log lines."""

    def __init__(self, services: Iterable[str], settings: Settings, listener: Listener) -> None:
        self.urls: dict[str, str] = {}
        self._listener = listener
        self._processes = {service: _start(service, settings) for service in services}
        for service, process in self._processes.items():
            assert process.stdout is not None  # noqa: S101 - it was started with a pipe
            said = process.stdout.readline()
            if " on http://" not in said:
                self.stop()
                raise FunctionDownError(f"{service}: {said.strip() or 'ended without a word'}")
            self.urls[service] = said.split()[-1]
            threading.Thread(target=self._read, args=(process.stdout,), name=service, daemon=True).start()

    def stop(self) -> None:
        """End them all, and wait until they have."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(timeout=15)
            if process.stdout is not None:
                process.stdout.close()

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            with suppress(ValueError, KeyError):
                fields = json.loads(line)
                self._listener(Activity.from_fields(fields, fields["message"], time.time()))


def _start(service: str, settings: Settings) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "MUSTER_API_SERVER": settings.api_server,
        "KUBECONFIG": settings.kubeconfig,
        "MUSTER_SWEEP_JITTER_SECONDS": str(settings.sweep_jitter_seconds),
        "MUSTER_LOG_LEVEL": "INFO",
    }
    step = FUNCTIONS / service.replace("-", "_") / "function" / "step.py"
    return subprocess.Popen(  # noqa: S603 - this very interpreter
        [sys.executable, "-m", "muster.runtime.serve", str(step), "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
