"""One log line per event, metrics in Prometheus' format, and a trace where it is switched on."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from muster.cluster import errors
from muster.runtime.handle import Handler
from muster.runtime.telemetry import logs, tracing
from muster.runtime.telemetry.metrics import exposition_of
from tests.unit.runtime.fakes import NOW, FakeCluster, a_handler, a_step, an_event

Written = Callable[..., dict[str, Any]]


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """A function that handles an event and returns the line on standard output; the loggers are restored."""
    for logger in (logs.LOGGER, logging.root):
        for name in ("handlers", "level", "propagate"):
            monkeypatch.setattr(logger, name, getattr(logger, name))

    def handle(handler: Handler, **change: str) -> dict[str, Any]:
        logs.configure("DEBUG")
        handler.handle(*an_event(**change))
        (line,) = capsys.readouterr().out.splitlines()
        return dict(json.loads(line))

    yield handle
    logging.root.manager._clear_cache()  # type: ignore[attr-defined]


def test_line_of_an_event(written: Written) -> None:
    """Who, what, how it ended, in how many calls and writes, and how long it took."""
    line = written(a_handler(cluster_name="eu-1"))
    assert line.pop("duration_ms") >= 0
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "message": "2 gates lifted",
        "step": "patch_pods",
        "event": "421c",
        "type": "dev.knative.apiserver.resource.update",
        "kind": "Pod",
        "namespace": "team-a",
        "name": "llama-0",
        "cluster": "eu-1",
        "outcome": "done",
        "reason": "GatesLifted",
        "status": 202,
        "actions": 2,
        "api_calls": 3,
    }


@pytest.mark.parametrize(
    ("change", "error", "level", "outcome"),
    [
        ({}, errors.Conflict("x"), "WARNING", "requeue"),
        ({"specversion": "0.3"}, None, "WARNING", "unreadable"),
        ({"type": "com.example"}, None, "DEBUG", "nothing"),
        ({}, ZeroDivisionError("by zero"), "ERROR", "bug"),
    ],
)
def test_what_may_need_a_person_is_a_warning(
    written: Written, change: dict[str, str], error: Exception | None, level: str, outcome: str
) -> None:
    """Only bugs have a trace."""
    line = written(a_handler(cluster=FakeCluster(on_read=error)), **change)
    assert (line["level"], line["outcome"], line["event"]) == (level, outcome, "421c")
    assert ("ZeroDivisionError: by zero" in line.get("trace", "")) == (outcome == "bug")


Samples = dict[tuple[str, ...], float]


def read(handler: Handler, name: str) -> Samples:
    """All samples of a metric: the values of its labels, without the function, and its own value."""
    families = text_string_to_metric_families(exposition_of([handler.metrics]).decode())
    return {
        tuple(value for label, value in sorted(sample.labels.items()) if label != "function"): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def send(handler: Handler, **change: str) -> None:
    """Handle one event."""
    handler.handle(*an_event(**change))


def test_events_and_calls_are_counted() -> None:
    """By outcome and reason; what a sender writes is no label."""
    handler = a_handler()
    send(handler)
    send(handler, type="com.example.order", id="x" * 500)
    send(handler, specversion="0.3")
    assert read(handler, "muster_events_total") == {
        ("Pod", "done", "GatesLifted", "update"): 1,
        ("", "nothing", "NotForThisStep", "other"): 1,
        ("", "unreadable", "UnreadableEvent", "unreadable"): 1,
    }
    assert read(handler, "muster_api_calls_total") == {("pods", "ok", "get"): 1, ("pods", "ok", "create"): 2}
    assert read(handler, "muster_event_duration_seconds_count") == {
        ("update",): 1,
        ("other",): 1,
        ("unreadable",): 1,
    }
    assert read(handler, "muster_events_in_flight") == {(): 0}
    failing = a_handler(cluster=FakeCluster(on_read=errors.Forbidden("no", status=403)))
    send(failing)
    assert read(failing, "muster_api_calls_total") == {("pods", "403", "get"): 1}


def test_a_trace_has_the_parts_and_calls_of_an_event() -> None:
    """Within the sender's span; it has the outcome as the log line does."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    settings = a_handler().settings
    handler = Handler(a_step(), FakeCluster(), settings, lambda: NOW, tracing.spans_of(provider))
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers, body = an_event()
    handler.handle({**headers, "Traceparent": f"00-{trace}-{parent}-01"}, body)
    spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
    names = {span.context.span_id: span.name for span in spans}
    assert [(span.name, names.get(span.parent.span_id, "sender")) for span in spans if span.parent] == [
        ("patch_pods", "sender"),
        ("observe", "patch_pods"),
        ("get pods", "observe"),
        ("plan", "patch_pods"),
        ("execute", "patch_pods"),
        ("create pods", "execute"),
        ("create pods", "execute"),
    ]
    assert {f"{span.context.trace_id:032x}" for span in spans} == {trace}
    assert dict(spans[0].attributes or {})["muster.reason"] == "GatesLifted"
    provider.shutdown()
