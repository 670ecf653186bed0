"""GET /metrics of a function, in Prometheus' format."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from prometheus_client.parser import text_string_to_metric_families

from muster.cluster import errors
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime.config import Settings
from muster.runtime.http.app import create_app
from muster.runtime.telemetry.metrics import Exposition
from tests.unit.runtime.fakes import BODY, NOW, FakeCluster, a_step, an_event

ROOT = Path(__file__).parents[4]
ORDER = ("verb", "resource", "status", "type", "kind", "outcome", "reason")
"""How the labels of a sample are read here; the text has them by the alphabet."""


def a_client(cluster: Any = None, step: Any = None) -> FlaskClient:
    """A client of the app of the step in `fakes`."""
    return create_app(step or a_step(), cluster or FakeCluster(), Settings(), lambda: NOW).test_client()


def send(client: FlaskClient, body: bytes | None = None, **change: Any) -> int:
    """Send one event; the status of the answer."""
    headers, usual = an_event(**change)
    return client.post("/", headers=headers, data=usual if body is None else body).status_code


def read(client: FlaskClient, name: str) -> dict[tuple[str, ...], float]:
    """All samples of a metric: the values of its labels, without the function, and its own value."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    assert all(sample.labels["function"] == "patch_pods" for sample in samples)
    return {
        tuple(sample.labels[label] for label in ORDER if label in sample.labels): sample.value
        for sample in samples
    }


def test_the_format_is_prometheus_text() -> None:
    """Text format 0.0.4, and the use of memory and CPU that every exporter has."""
    answer = a_client().get("/metrics")
    assert answer.status_code == 200
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert "process_resident_memory_bytes" in answer.text


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "body", "labels"),
    [
        pytest.param({}, None, ("update", "Pod", "done", "GatesLifted"), id="an event of a known kind"),
        pytest.param({"type": "dev.knative.apiserver.resource.delete"}, None,
                     ("delete", "Pod", "done", "GatesLifted"), id="the type is what happened"),
        pytest.param({}, json.dumps(BODY | {"kind": "Anything"}).encode(),
                     ("update", "other", "done", "GatesLifted"), id="a made-up kind is no label"),
        pytest.param({"type": "com.example.order"}, None,
                     ("other", "", "nothing", "NotForThisStep"), id="a made-up type is no label"),
        pytest.param({"specversion": "0.3"}, None,
                     ("unreadable", "", "unreadable", "UnreadableEvent"), id="an event that cannot be read"),
        pytest.param({"type": "dev.muster.sweep"}, b"",
                     ("sweep", "", "done", "Swept"), id="a sweep"),
    ],
)  # fmt: skip
def test_each_event_is_counted_once(change: dict[str, str], body: bytes | None, labels: Any) -> None:
    """By type, kind, outcome and reason; and its time is in the histogram of its type."""
    client = a_client()
    for _ in range(2):
        send(client, body, **change)
    assert read(client, "muster_events_total") == {labels: 2}
    assert read(client, "muster_event_duration_seconds_count") == {(labels[0],): 2}


def test_body_above_the_limit_is_counted() -> None:
    """What is refused unread is seen too."""
    client = create_app(a_step(), FakeCluster(), Settings(body_limit_bytes=10), lambda: NOW).test_client()
    assert send(client) == 413
    assert read(client, "muster_events_total") == {("unreadable", "", "unreadable", "BodyTooLarge"): 1}


@pytest.mark.parametrize(
    ("cluster", "calls"),
    [
        pytest.param(FakeCluster(), {("get", "pods", "ok"): 1, ("create", "pods", "ok"): 2},
                     id="each call by verb and resource"),
        pytest.param(FakeCluster(on_write=errors.TooManyRequests("no", status=429)),
                     {("get", "pods", "ok"): 1, ("create", "pods", "429"): 1}, id="a refusal by its status"),
        pytest.param(FakeCluster(on_read=errors.Unavailable("refused")), {("get", "pods", "none"): 1},
                     id="no answer has no status"),
    ],
)  # fmt: skip
def test_calls_to_the_api_server(cluster: FakeCluster, calls: dict[tuple[str, ...], float]) -> None:
    """What a function costs the API server, and what that refuses."""
    client = a_client(cluster)
    send(client)
    assert read(client, "muster_api_calls_total") == calls


def test_object_that_is_gone_is_a_404(monkeypatch: pytest.MonkeyPatch) -> None:
    """A read that finds nothing is no error, but no success either."""
    cluster = FakeCluster()
    monkeypatch.setattr(cluster, "get", lambda *_: None)
    client = a_client(cluster)
    send(client)
    assert read(client, "muster_api_calls_total")[("get", "pods", "404")] == 1


@pytest.mark.thorough
def test_sweeps_count_their_objects_and_leave_their_time() -> None:
    """An alert needs to know when the last one was, and what sweeps found to repair."""
    client = a_client(step=a_step(plan=lambda _inputs, _now: NoOp(Reason.UP_TO_DATE)))
    assert read(client, "muster_last_sweep_timestamp_seconds") == {(): 0}
    send(client, b"", type="dev.muster.sweep")
    assert read(client, "muster_last_sweep_timestamp_seconds") == {(): NOW.timestamp()}
    assert read(client, "muster_swept_objects_total") == {("nothing", "UpToDate"): 1}


def test_events_in_flight() -> None:
    """One while it is being worked on, none after."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(_inputs: Any, _now: Any) -> NoOp:
        begun.set()
        assert go_on.wait(10)
        return NoOp(Reason.UP_TO_DATE)

    client = a_client(step=a_step(plan=slow))
    other = client.application.test_client()
    sender = threading.Thread(target=send, args=(other,))
    sender.start()
    assert begun.wait(10)
    assert read(client, "muster_events_in_flight") == {(): 1}
    go_on.set()
    sender.join()
    assert read(client, "muster_events_in_flight") == {(): 0}


def test_functions_of_one_process_count_apart() -> None:
    """On one machine all functions share a process; each reports only itself."""
    one, other = a_client(), a_client()
    send(one)
    assert read(other, "muster_events_total") == {}


@pytest.mark.thorough
def test_policy_events_and_cluster_do_not_import_metrics() -> None:
    """Neither policy, nor events, nor the cluster room load prometheus_client."""
    imports = "import muster.policy.plans.patch_pods, muster.events.predicates, muster.cluster.execute"
    output = subprocess.run(
        [sys.executable, "-c", f"{imports}\nimport sys\nprint('prometheus_client' in sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert output.stdout == "False\n"


def test_requests_that_wait_share_one_text() -> None:
    """Hundreds that ask at once take a processor for two texts, and each gets one begun after its request."""
    texts: list[bytes] = []
    numbered, go_on = threading.Semaphore(0), threading.Event()

    def make() -> bytes:
        texts.append(str(len(texts)).encode())
        go_on.wait(10)
        return texts[-1]

    def number(value: int) -> int:
        numbered.release()
        return value

    exposition = Exposition(make, map(number, count(1)))
    with ThreadPoolExecutor(20) as threads:
        first = threads.submit(exposition.text)
        for _ in range(2):  # of its request and of its text
            numbered.acquire(timeout=10)
        others = [threads.submit(exposition.text) for _ in range(19)]
        for _ in others:
            numbered.acquire(timeout=10)
        go_on.set()
    assert first.result() == b"0"
    assert {other.result() for other in others} == {b"1"}
