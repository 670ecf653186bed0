"""Functions installed from scratch and served behind func-python's server, as on a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import urllib3

from muster.replay.recorded_requests import RecordedRequest
from muster.simulator.apiserver import ApiServer
from tests.cluster.processes import free_ports
from tests.support import containerfile
from tests.support.containerfile import ROOT

FUNCTIONS = sorted(path.parent.name for path in ROOT.glob("functions/*/func.yaml"))
SERVED_BY_FUNC = "from func_python.http import serve; from function import new; serve(new)"
"""What func starts (knative/func, templates/python/scaffolding/instanced-http/service/main.py)."""


@dataclass
class ServedFunction:
    """One function's process, and the API server it talks to."""

    url: str
    process: subprocess.Popen[bytes]
    server: ApiServer
    log: Path
    http: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(retries=False, timeout=30))

    def send(self, capture: RecordedRequest) -> urllib3.BaseHTTPResponse:
        """Deliver an event as a broker does."""
        return self.http.request("POST", self.url, headers=dict(capture.headers), body=capture.body)

    def probe(self, which: str) -> tuple[int, str]:
        """Status and words of a health endpoint."""
        answer = self.http.request("GET", f"{self.url}/health/{which}")
        return answer.status, answer.data.decode().strip()

    def wait_until_ready(self, seconds: float) -> None:
        """Ask until it says so; what it said instead is in the error."""
        end = time.monotonic() + seconds
        while True:
            with suppress(urllib3.exceptions.HTTPError):
                if self.probe("readiness")[0] == 200:
                    return
            assert time.monotonic() < end, self.log.read_text()
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)

    def lines(self) -> list[dict[str, Any]]:
        """What it logged about events so far."""
        written = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in written if "outcome" in line]


def install_as_func(step: str, environment: Path, staged: Path, folder: Path) -> list[str]:
    """Install the staged function as func's host builder does, and return what func would start."""
    (wheel,) = (staged / f"{step}.wheel").iterdir()
    pip = [str(environment / "python"), "-m", "pip", "install", "--quiet", "--no-index"]
    # Every dependency that its pyproject.toml names is among the locked ones, in a version it takes.
    subprocess.run([*pip, "--dry-run", str(wheel)], check=True, capture_output=True)
    subprocess.run([*pip, "--no-deps", "--target", str(folder), str(wheel)], check=True, capture_output=True)
    return ["python", "-c", SERVED_BY_FUNC]


def lay_out_as_container(step: str, environment: Path, _staged: Path, folder: Path) -> list[str]:
    """Make the image's folder, and return what a container of the function starts."""
    containerfile.lay_out(folder)
    containerfile.run(containerfile.of_word("RUN")[1], folder, environment)
    return [*containerfile.of_word("ENTRYPOINT")[0].command, step.replace("_", "-")]


def lay_out_with_all_functions(step: str, environment: Path, staged: Path, folder: Path) -> list[str]:
    """Make the image's folder, and return what a container of all functions starts."""
    others = (function.replace("_", "-") for function in FUNCTIONS if function != step)
    return [*lay_out_as_container(step, environment, staged, folder), *others]


Install = Callable[[str, Path, Path, Path], list[str]]
INSTALLS = [
    pytest.param(install_as_func, id="staged for func"),
    pytest.param(lay_out_as_container, id="by Containerfile"),
    pytest.param(lay_out_with_all_functions, id="by Containerfile, with all functions in one process"),
]


@contextmanager
def serving(
    install: Install, step: str, environment: Path, staged: Path, folder: Path, **more: str
) -> Iterator[ServedFunction]:
    """Install one function and serve it, with more variables, until it says that it is ready."""
    command = install(step, environment, staged, folder)
    server, log, address = ApiServer().start(), folder / "log", f"127.0.0.1:{free_ports(1)[0]}"
    variables = {
        "PATH": f"{environment}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder),
        "LISTEN_ADDRESS": address,
        "MUSTER_API_SERVER": server.url,
        **more,
    }
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=variables, stdout=output, stderr=output)
    path = f"/{step.replace('_', '-')}" if install is lay_out_with_all_functions else ""
    served = ServedFunction(f"http://{address}{path}", process, server, log)
    try:
        served.wait_until_ready(60)
        yield served
    finally:
        process.kill()
        process.wait()
        served.http.clear()
        served.server.stop()
