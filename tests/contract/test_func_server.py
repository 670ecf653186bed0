"""Functions as they run on a cluster: in an environment of its own, behind func's server and as the image.

Neither this repository nor its environment is on the path. What `make stage` puts together is served as func
does it; what the Containerfile says is carried out line by line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest
import urllib3

from functions import stage
from muster.objects import yaml_files
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.apiserver.http import Request
from tests.cluster.processes import free_ports
from tests.replays.golden import cases
from tests.support import containerfile
from tests.support.containerfile import ROOT

# The first of them waits for an installation from the package index.
pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

Install = Callable[[Path, int], tuple[list[str], str]]
SERVED_BY_FUNC = "from func_python.http import serve; from function import new; serve(new)"
"""What func starts (knative/func, templates/python/scaffolding/instanced-http/service/main.py)."""
CASE = next(case for case in cases() if case.sentence == "a new PodGroup lets its three pods go")


@pytest.fixture(name="programs", scope="module")
def _programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has what the Containerfile installs, and func's server."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    containerfile.run(containerfile.of_word("RUN")[0], ROOT, folder / "bin")
    func = f"func-python=={version('func-python')}"
    subprocess.run([str(folder / "bin/pip"), "install", "--quiet", func], check=True, capture_output=True)
    return folder / "bin"


def for_func(folder: Path, port: int) -> tuple[list[str], str]:
    """Stage patch_pods; return what func starts, and the path of the function."""
    stage.stage(ROOT / "functions/patch_pods", folder)
    return ["python", "-c", SERVED_BY_FUNC], f"http://127.0.0.1:{port}"


def as_image(folder: Path, port: int) -> tuple[list[str], str]:
    """Lay out the image; return what a container of all functions starts, and the path of patch_pods."""
    containerfile.lay_out(folder)
    (entrypoint,) = containerfile.of_word("ENTRYPOINT")
    names = [path.parent.name.replace("_", "-") for path in (ROOT / "functions").glob("*/func.yaml")]
    return [*entrypoint.command, *names, "--port", str(port)], f"http://127.0.0.1:{port}/patch-pods"


@dataclass
class Served:
    """A process, its URL and that of patch_pods in it, and the API server that it talks to."""

    process: subprocess.Popen[bytes]
    base: str
    url: str
    server: ApiServer

    def deliver(self) -> urllib3.BaseHTTPResponse:
        """Deliver the event of the case as a broker does."""
        event = CASE.case.event
        return urllib3.request(
            "POST", self.url, headers=dict(event.headers), body=event.body, retries=False, timeout=30
        )


@contextmanager
def serving(install: Install, programs: Path, folder: Path) -> Iterator[Served]:
    """Serve functions until the block ends, from the moment that they are ready."""
    (port,) = free_ports(1)
    command, url = install(folder, port)
    with ApiServer() as server:
        server.load([*resource_definitions(), *CASE.case.objects])
        variables = {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(folder),
            "LISTEN_ADDRESS": f"127.0.0.1:{port}",
            "MUSTER_API_SERVER": server.url,
        }
        with subprocess.Popen(command, cwd=folder, env=variables) as process:
            served = Served(process, f"http://127.0.0.1:{port}", url, server)
            try:
                end = time.monotonic() + 60
                while not _is_ready(served.base):
                    assert (process.poll(), time.monotonic() < end) == (None, True)
                    time.sleep(0.05)
                yield served
            finally:
                process.kill()


def _is_ready(url: str) -> bool:
    with suppress(urllib3.exceptions.HTTPError):
        return urllib3.request("GET", f"{url}/health/readiness", retries=False).status == 200
    return False


@pytest.mark.parametrize("install", [for_func, as_image])
def test_work_begun_is_finished_after_sigterm(install: Install, programs: Path, tmp_path: Path) -> None:
    """What is no event gets 400; of an event all writes are made, though SIGTERM comes during the first."""
    with serving(install, programs, tmp_path) as served:
        assert urllib3.request("GET", f"{served.base}/health/liveness").data.strip() == b"OK"
        assert urllib3.request("POST", served.url, body=b"no event").status == 400
        (plan,) = yaml_files.load_all(CASE.plan_file.read_text())
        written: list[str] = []
        begun = threading.Event()

        def intercept(request: Request) -> None:
            if request.method != "GET" and "authorization.k8s.io" not in request.path:
                written.append(request.path.rpartition("/")[2])
                if not begun.is_set():
                    begun.set()
                    time.sleep(1)

        served.server.intercept = intercept
        answers: list[int] = []

        def deliver() -> None:
            with suppress(urllib3.exceptions.HTTPError):
                answers.append(served.deliver().status)

        sender = threading.Thread(target=deliver)
        sender.start()
        assert begun.wait(60)
        served.process.send_signal(signal.SIGTERM)
        sender.join(60)
        assert served.process.wait(60) == 0
        assert sorted(written) == sorted(action["name"] for action in plan["actions"])
        assert answers in ([200], [])
