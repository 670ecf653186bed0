"""Run the functions on one machine behind waitress, in threads of this process or as processes.

A subscriber is the name of a function's Service, `create-workload`, or, where several functions share a
Service, that of the Service with the path: `muster/create-workload`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import IO

from muster.local.serving import WsgiServer
from muster.replay.activity import Activity, ActivityHandler
from muster.runtime import steps
from muster.runtime.config import Settings
from muster.runtime.serve import Functions as ServedFunctions

Listener = Callable[[Activity], None]

STOP_SECONDS = 15.0
"""How long a function may take to end after SIGTERM."""


class FunctionDownError(Exception):
    """A function did not start; the message has its name and its first line of output."""


class InThreads:
    """Runs each Service in threads of this process, where it starts within milliseconds.

    Args:
        subscribers: the functions.
        settings: of all functions.
        listener: called for each activity.
        kubeconfigs: of the service accounts, by Service; others use the cluster of the settings.
        own_steps: the step.py of steps that are not Muster's, by the names of their Services.

    Raises:
        BadSettingError: a kubeconfig cannot be used.
        LookupError: a service has no step.
    """

    def __init__(
        self,
        subscribers: Iterable[str],
        settings: Settings,
        listener: Listener,
        kubeconfigs: Mapping[str, Path] = MappingProxyType({}),
        own_steps: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self.urls: dict[str, str] = {}
        with ExitStack() as stops:
            stops.enter_context(ActivityHandler(listener))
            for service, functions in _by_service(subscribers).items():
                chosen = [steps.load_step(file) for file in _files(functions, own_steps)]
                served = ServedFunctions.connected(chosen, _with_account(settings, kubeconfigs.get(service)))
                server = WsgiServer(served.app, service, threads=settings.threads)
                stops.callback(server.stop)
                self.urls |= _urls(f"http://127.0.0.1:{server.port}", functions)
            self._stops = stops.pop_all()

    def stop(self) -> None:
        """Stop all functions."""
        self._stops.close()


class AsProcesses:
    """Runs each Service in a process of its own, as in a container, and parses its log lines.

    The arguments are those of `InThreads`.
    """

    def __init__(
        self,
        subscribers: Iterable[str],
        settings: Settings,
        listener: Listener,
        kubeconfigs: Mapping[str, Path] = MappingProxyType({}),
        own_steps: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self.urls: dict[str, str] = {}
        self._listener = listener
        self._processes: dict[str, subprocess.Popen[str]] = {}
        functions = _by_service(subscribers)
        with ExitStack() as stops:
            stops.callback(self.stop)
            for service, names in functions.items():
                account = _with_account(settings, kubeconfigs.get(service))
                self._processes[service] = _start(_files(names, own_steps), account)
            for service, process in self._processes.items():
                self.urls |= _urls(self._url_of(service, process), functions[service])
            stops.pop_all()

    def stop(self) -> None:
        """Terminate all processes and wait until they have ended; kill those that do not end."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def _url_of(self, service: str, process: subprocess.Popen[str]) -> str:
        """Wait until a function listens; return its URL."""
        assert process.stdout is not None  # noqa: S101 - it was started with a pipe
        first_line = process.stdout.readline()
        # Printed by muster/runtime/serve.py once it listens: "create_workload listens on http://0.0.0.0:8080".
        if " on http://" not in first_line:
            raise FunctionDownError(f"{service}: {first_line.strip() or 'ended without a message'}")
        threading.Thread(target=self._read, args=(process.stdout,), name=service, daemon=True).start()
        return first_line.split()[-1]

    def _read(self, lines: IO[str]) -> None:
        for line in lines:
            with suppress(ValueError, KeyError):
                fields = json.loads(line)
                self._listener(Activity.from_fields(fields, fields["message"], time.time()))


def _with_account(settings: Settings, kubeconfig: Path | None) -> Settings:
    return settings if kubeconfig is None else replace(settings, api_server="", kubeconfig=str(kubeconfig))


def _by_service(subscribers: Iterable[str]) -> dict[str, list[str]]:
    functions: dict[str, list[str]] = {}
    for subscriber in subscribers:
        functions.setdefault(subscriber.partition("/")[0], []).append(subscriber)
    return functions


def _files(subscribers: Iterable[str], own_steps: Mapping[str, Path]) -> list[Path]:
    """Return the step.py of functions, whose names are the paths, else the names of their Services."""
    return [steps.step_file(subscriber.rpartition("/")[2], own_steps) for subscriber in subscribers]


def _urls(url: str, subscribers: Iterable[str]) -> dict[str, str]:
    """Return the URLs of the functions of a Service, which is at `url`."""
    return {
        subscriber: url + subscriber.removeprefix(subscriber.partition("/")[0]) for subscriber in subscribers
    }


def _start(files: Iterable[Path], settings: Settings) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "MUSTER_API_SERVER": settings.api_server,
        "KUBECONFIG": settings.kubeconfig,
        "MUSTER_SWEEP_JITTER_SECONDS": str(settings.sweep_jitter_seconds),
        "MUSTER_LOG_LEVEL": "INFO",
    }
    return subprocess.Popen(  # noqa: S603 - the command is this interpreter
        [sys.executable, "-m", "muster.runtime.serve", *map(str, files), "--port", "0"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
