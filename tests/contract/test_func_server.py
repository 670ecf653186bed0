"""Every function as it runs on a cluster: in an environment of its own, behind func-python's server.

Neither this repository nor its environment is on the path. What `make stage` puts together is installed as
func does it (`pip install --target`); what the Containerfile says is carried out line by line. Both then get
recorded events over HTTP, with the embedded API server behind them, and must ask of it what the golden plans
say.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import urllib3

from muster.objects import yaml_files
from muster.objects.resources import by_kind
from muster.replay.recorded_requests import RecordedRequest
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.apiserver.http.requests import Request
from tests.contract.served_functions import (
    FUNCTIONS,
    INSTALLS,
    Install,
    ServedFunction,
    install_as_func,
    lay_out_as_container,
    serving,
)
from tests.replays.golden import cases
from tests.support import containerfile
from tests.support.containerfile import ROOT

# The first of them waits for an installation from the package index.
pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

STEPS = sorted({case.step.name for case in cases()})
METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
TIMES = {"lastTransitionTime", "firstTimestamp", "lastTimestamp"}
"""A served function has a clock of its own; golden plans have the time of their event."""

Write = tuple[str, str, Any]
"""Method, path and body of a request that changes something."""


@pytest.fixture(name="environment", scope="module")
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has nothing but what the Containerfile installs."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    containerfile.run(containerfile.of_word("RUN")[0], ROOT, programs)
    return programs


@pytest.fixture(name="staged", scope="module")
def _staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make stage` puts together, with a wheel of each function beside it."""
    folder = tmp_path_factory.mktemp("staged")
    subprocess.run(["make", "-s", "stage", f"OUT={folder}"], cwd=ROOT, check=True, capture_output=True)
    for step in FUNCTIONS:
        command = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "-t",
            "wheel",
            "-d",
            str(folder / f"{step}.wheel"),
        ]
        subprocess.run(command, cwd=folder / step, check=True, capture_output=True)
    return folder


@pytest.fixture(
    name="served",
    scope="module",
    params=[
        pytest.param((*install.values, step), id=f"{step} {install.id}")
        for install in INSTALLS
        for step in STEPS
    ],
)
def _served(
    request: pytest.FixtureRequest, environment: Path, staged: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, ServedFunction]]:
    install, step = request.param
    with serving(install, step, environment, staged, tmp_path_factory.mktemp(step)) as served:
        yield step, served


def test_it_sends_the_requests_of_the_golden_plans(served: tuple[str, ServedFunction]) -> None:
    """In every recorded case of the function; the answer suits a broker, the log line has the reason."""
    step, function = served
    outcomes = 0
    for case in (case for case in cases() if case.step.name == step):
        _start_over(function, case.case.objects)
        if not _keeps(function, case.case.objects):
            continue
        outcomes += 1
        writes = _recorded(function.server)
        answer = function.send(case.case.event)
        planned = yaml_files.load_all(case.plan_file.read_text())
        expected = [_write(action) for plan in planned for action in plan["actions"]]
        # A sweep goes through the objects as the API server lists them; patch_pods writes several at a time.
        if len(planned) > 1 or step == "patch_pods":
            writes.sort(key=str)
            expected.sort(key=str)
        assert writes == expected, case.sentence
        assert answer.status in {200, 202, 409}, case.sentence
        if answer.status == 200:
            assert answer.headers["ce-type"].startswith(f"dev.muster.{step}."), case.sentence
        reasons = {line["reason"] for line in function.lines()[-1:]}
        assert reasons <= {"Swept", planned[0]["reason"]}, case.sentence
    assert outcomes > 5


def test_probes_report_the_process_and_the_api_server(served: tuple[str, ServedFunction]) -> None:
    """Alive in any case; ready while the API server is there, and otherwise saying why not."""
    _, function = served
    assert function.probe("liveness") == (200, "OK")
    assert function.probe("readiness") == (200, "OK")


def test_a_request_without_an_event_gets_400(served: tuple[str, ServedFunction]) -> None:
    """400 with a reason: a broker hands it to the dead letter instead of sending it for ever."""
    _, function = served
    answer = function.send(RecordedRequest({"content-type": "text/plain"}, b"no event", "here"))
    assert (answer.status, answer.json()["reason"]) == (400, "UnreadableEvent")


@pytest.mark.parametrize("install", INSTALLS)
def test_dead_letters_are_kept(install: Install, environment: Path, staged: Path, tmp_path: Path) -> None:
    """The one function that is no step stores what it is sent, and needs nothing more than the others."""
    with serving(install, "dead_letter", environment, staged, tmp_path) as function:
        _start_over(
            function, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "muster-system"}}]
        )
        headers = {"ce-specversion": "1.0", "ce-id": "lost", "ce-source": "/tests", "ce-type": "any"}
        assert function.send(RecordedRequest(headers, b"{}", "here")).status == 202
        (kept,) = (obj for obj in function.server.snapshot() if obj["kind"] == "ConfigMap")
        assert kept["metadata"]["namespace"] == "muster-system"


@pytest.mark.parametrize(
    ("seconds", "answered"),
    [
        pytest.param(1.0, True, id="an event of one second is answered"),
        pytest.param(5.0, False, id="one of five loses its answer after three, and is finished all the same"),
    ],
)
def test_work_begun_is_finished_after_sigterm(
    seconds: float, answered: bool, environment: Path, staged: Path, tmp_path: Path
) -> None:
    """The first of three writes is slow, and SIGTERM comes meanwhile: all three are made before the end."""
    with serving(install_as_func, "patch_pods", environment, staged, tmp_path) as function:
        case = next(case for case in cases() if case.sentence == "a new PodGroup lets its three pods go")
        _start_over(function, case.case.objects)
        slow, begun = _slow_writes(function.server, seconds)
        answers: list[int] = []

        def deliver() -> None:
            with suppress(urllib3.exceptions.HTTPError):
                answers.append(function.send(case.case.event).status)

        sender = threading.Thread(target=deliver)
        sender.start()
        assert begun.wait(60)
        function.process.send_signal(signal.SIGTERM)
        sender.join(60)
        assert function.process.wait(60) == 0
        assert len(slow) == 3
        assert (answers == [200]) is answered


def test_traces_arrive(environment: Path, staged: Path, tmp_path: Path) -> None:
    """With what the operations document adds to an image, spans of an event come under its sender's trace."""
    added, folder = tmp_path / "added", tmp_path / "function"
    folder.mkdir()
    (install,) = (
        instruction
        for instruction in containerfile.shown_in(ROOT / "docs/operations.md")
        if instruction.word == "RUN"
    )
    pip = [str(environment / "python"), *install.command[1:], "--quiet", "--target", str(added)]
    subprocess.run(pip, check=True, capture_output=True)
    trace = "0af7651916cd43dd8448eb211c80319c"
    with _collector() as (collector, sent):
        settings = {
            "PYTHONPATH": f"{folder}{os.pathsep}{added}",
            "MUSTER_TRACES": "otlp",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
        }
        with serving(lay_out_as_container, "patch_pods", environment, staged, folder, **settings) as function:
            case = next(case for case in cases() if case.sentence == "a new PodGroup lets its three pods go")
            _start_over(function, case.case.objects)
            headers = {**case.case.event.headers, "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
            function.send(RecordedRequest(headers, case.case.event.body, "here"))
            spans = b""
            while b"muster.outcome" not in spans:  # the span of the event as a whole ends last
                spans += sent.get(timeout=60)
    # Protobuf has the trace's id as bytes, names as they are.
    assert bytes.fromhex(trace) in spans
    assert {name for name in (b"muster-patch-pods", b"plan", b"patch pods") if name not in spans} == set()


@contextmanager
def _collector() -> Iterator[tuple[str, queue.Queue[bytes]]]:
    """What takes OpenTelemetry's spans over HTTP: its URL, and each body that it gets."""
    sent = queue.Queue[bytes]()

    class TraceReceiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if self.path == "/v1/traces":
                sent.put(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), TraceReceiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", sent
        server.shutdown()


def _slow_writes(server: ApiServer, seconds: float) -> tuple[list[str], threading.Event]:
    """Let the first write take so long; the paths of all writes, and an event set when the first begins."""
    paths: list[str] = []
    begun = threading.Event()

    def intercept(request: Request) -> None:
        if request.method != "GET":
            paths.append(request.path)
            if not begun.is_set():
                begun.set()
                time.sleep(seconds)

    server.intercept = intercept
    return paths, begun


def _start_over(function: ServedFunction, objects: list[dict[str, Any]]) -> None:
    """Another API server at the same address, with these objects in it."""
    port = int(function.server.url.rpartition(":")[2])
    function.server.stop()
    function.server = ApiServer(port=port).start()
    function.server.load([*resource_definitions(), *objects])


def _keeps(function: ServedFunction, objects: list[dict[str, Any]]) -> bool:
    """Whether the released types have all fields of a case; a few cases are about what comes after them."""
    for obj in objects:
        if obj["apiVersion"].startswith("trainer.kubeflow.org/"):
            metadata = obj["metadata"]
            resource = by_kind(obj["apiVersion"], obj["kind"])
            path = resource.path(metadata["name"], metadata.get("namespace", ""))
            stored = function.http.request("GET", f"{function.server.url}{path}").json()
            if stored["spec"] != obj["spec"]:
                return False
    return True


def _recorded(server: ApiServer) -> list[Write]:
    """A list that fills with the writes to come; questions about rights are none."""
    writes: list[Write] = []

    def intercept(request: Request) -> None:
        if request.method != "GET" and "authorization.k8s.io" not in request.path:
            body = _without_times(request.json) if request.method != "DELETE" else None
            writes.append((request.method, request.path, body))

    server.intercept = intercept
    return writes


def _write(action: Mapping[str, Any]) -> Write:
    """The request that an action of a golden plan stands for."""
    name = "" if action["verb"] == "create" else action["name"]
    resource = by_kind(action["apiVersion"], action["kind"])
    path = resource.path(name, action["namespace"], action.get("subresource", ""))
    return METHODS[action["verb"]], path, _without_times(action.get("body"))


def _without_times(body: Any) -> Any:
    """A body without the times in it."""
    if isinstance(body, list):
        return [_without_times(entry) for entry in body]
    if isinstance(body, dict):
        return {key: _without_times(value) for key, value in body.items() if key not in TIMES}
    return body
