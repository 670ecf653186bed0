"""A step as a process behind waitress on a real socket, without an API server."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.objects.text import printable

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-m", "muster.runtime.serve", "functions/create_workload/function/step.py"]
HEADERS = {
    "ce-specversion": "1.0",
    "ce-id": "421c",
    "ce-source": "/test",
    "ce-type": "dev.knative.apiserver.ref.add",
    "content-type": "application/json",
}
JOB = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "team-a", "name": "llama"}


@pytest.fixture
def absent_server() -> Iterator[str]:
    """The address of an API server that is away: bound, but no process listens."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{door.getsockname()[1]}"


@pytest.fixture
def process(absent_server: str) -> Iterator[subprocess.Popen[str]]:
    """The step create_workload, listening."""
    with subprocess.Popen(
        [*COMMAND, "--port", "0"],
        cwd=ROOT,
        env={**os.environ, "MUSTER_API_SERVER": absent_server},
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def line(process: subprocess.Popen[str]) -> str:
    """The next line of its output."""
    assert process.stdout
    return process.stdout.readline()


def test_life_of_a_process(process: subprocess.Popen[str]) -> None:
    """It says where it listens, answers and logs each event, and ends cleanly on a signal."""
    first = line(process)
    listening = re.search(r"http://127\.0\.0\.1:(\d+)", first)
    assert listening
    assert "create_workload" in first
    connection = http.client.HTTPConnection("127.0.0.1", int(listening[1]), timeout=20)

    def call(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str, Any]:
        connection.request(method, path, body, HEADERS | headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers["Retry-After"]

    assert call("GET", "/health/liveness") == (200, "OK\n", None)
    assert call("POST", "/", "{}", **{"ce-type": "com.example.order"}) == (202, "", None)
    assert json.loads(line(process))["reason"] == "NotForThisStep"

    status, words, again = call("POST", "/", json.dumps(JOB))
    assert (status, json.loads(words)["reason"], again) == (503, "Unavailable", "1")
    logged = json.loads(line(process))
    assert (logged["outcome"], logged["kind"], logged["name"]) == ("come_again", "Job", "llama")

    # An iterable body is sent in chunks, without a Content-Length.
    status, words, _ = call("POST", "/", iter([b'{"apiVersion":', b'"batch/v1"}']))
    assert (status, json.loads(words)["reason"]) == (400, "UnreadableEvent")
    assert "data.kind" in json.loads(words)["message"]
    assert json.loads(line(process))["reason"] == "UnreadableEvent"
    connection.close()

    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_start_without_a_cluster_fails_with_a_message() -> None:
    """A process that does not know its cluster ends at once and says what to set."""
    ours = {"KUBECONFIG", "MUSTER_API_SERVER", "KUBERNETES_SERVICE_HOST"}
    ended = subprocess.run(
        COMMAND,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in ours},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert "MUSTER_API_SERVER" in ended.stderr
    assert "KUBECONFIG" in ended.stderr


def test_start_with_a_bad_kubeconfig_fails_with_a_message(tmp_path: Path) -> None:
    """One line, no trace, and no control character."""
    file = tmp_path / "con\x1bfig"
    file.write_text("a: [1\n")
    ours = {"MUSTER_API_SERVER": "", "KUBECONFIG": str(file)}
    ended = subprocess.run(
        COMMAND, cwd=ROOT, env=os.environ | ours, capture_output=True, text=True, check=False
    )
    (line,) = ended.stderr.splitlines()
    assert (ended.returncode, line.startswith(f"KUBECONFIG: {printable(str(file))}:2:1: ")) == (2, True), line
