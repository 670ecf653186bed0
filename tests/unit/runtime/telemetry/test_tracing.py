"""One span for each event, with the sender's span as parent, and child spans for its parts and requests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from muster.cluster.errors import Unavailable
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.telemetry import tracing
from tests.unit.runtime.fakes import NOW, FakeCluster, a_step, an_event

ROOT = Path(__file__).parents[4]
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"


class Traced:
    """A handler whose spans are kept."""

    def __init__(self, cluster: FakeCluster | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        spans = tracing.spans_of(self.provider)
        self.handler = Handler(a_step(), cluster or FakeCluster(), Settings(), lambda: NOW, spans)

    def spans(self, **headers: str) -> Sequence[ReadableSpan]:
        """The spans of one event, in the order in which they began."""
        usual, body = an_event()
        self.handler.handle(usual | headers, body)
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)


@pytest.fixture
def traced() -> Iterator[Traced]:
    """A handler, whose provider is shut down in the end."""
    made = Traced()
    yield made
    made.provider.shutdown()


def parents(spans: Sequence[ReadableSpan]) -> list[tuple[str, str]]:
    """Each span and the one it is part of."""
    names = {span.context.span_id: span.name for span in spans}
    return [(span.name, names.get(span.parent.span_id, "sender") if span.parent else "") for span in spans]


def test_parts_and_calls_are_inside_the_event(traced: Traced) -> None:
    """What took the time is seen: the read, the plan, or a write."""
    assert parents(traced.spans()) == [
        ("patch_pods", ""),
        ("observe", "patch_pods"),
        ("get pods", "observe"),
        ("plan", "patch_pods"),
        ("execute", "patch_pods"),
        ("create pods", "execute"),
        ("create pods", "execute"),
    ]


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("Traceparent", id="the HTTP header, as Knative's broker passes it on"),
        pytest.param("ce-traceparent", id="the CloudEvent's own extension"),
    ],
)
def test_sender_is_the_parent(traced: Traced, header: str) -> None:
    """One trace from the source to the API server."""
    event, *parts = traced.spans(**{header: TRACEPARENT})
    assert event.parent is not None
    assert (f"{event.context.trace_id:032x}", f"{event.parent.span_id:016x}") == (TRACE, PARENT)
    assert {span.context.trace_id for span in parts} == {event.context.trace_id}


def test_broken_traceparent_begins_a_trace(traced: Traced) -> None:
    """A sender's mistake costs no event."""
    event, *_ = traced.spans(traceparent="nonsense")
    assert event.parent is None


@pytest.mark.parametrize(("length", "kept"), [(512, True), (513, False)])
def test_a_long_tracestate_is_dropped(traced: Traced, length: int, *, kept: bool) -> None:
    """Thousands of spans of 8 KiB each that wait for the exporter would fill the memory."""
    state = ",".join(["a=" + "x" * 253, "b=" + "x" * (length - 258)])
    assert len(state) == length
    event, *_ = traced.spans(traceparent=TRACEPARENT, tracestate=state)
    assert event.parent is not None
    assert event.context.trace_state.to_header() == (state if kept else "")


def test_functions_of_a_process_share_the_queue_of_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each with its own name; seven queues would hold seven times as many spans that wait."""
    tracing._processor.cache_clear()
    providers: list[Any] = []
    monkeypatch.setattr(tracing, "spans_of", providers.append)
    for name in ("patch_pods", "resize_gang"):
        tracing.configured("otlp", name)
    assert [one.resource.attributes["service.name"] for one in providers] == [
        "muster-patch-pods",
        "muster-resize-gang",
    ]
    (queue,) = {one._active_span_processor._span_processors for one in providers}
    assert len(queue) == 1
    for one in providers:
        one.shutdown()
    tracing._processor.cache_clear()


def test_a_span_has_the_outcome_of_the_event(traced: Traced) -> None:
    """As the log line does, so that one leads to the other."""
    event, *_ = traced.spans()
    attributes = dict(event.attributes or {})
    assert (attributes["muster.event"], attributes["muster.outcome"], attributes["muster.reason"]) == (
        "421c",
        "done",
        "GatesLifted",
    )


def test_call_that_fails_is_an_error_of_its_span() -> None:
    """The event itself comes again, which is no error of the trace."""
    traced = Traced(FakeCluster(on_read=Unavailable("refused")))
    spans = {span.name: span for span in traced.spans()}
    assert not spans["get pods"].status.is_ok
    assert spans["patch_pods"].status.is_unset
    traced.provider.shutdown()


def test_without_the_extra_there_are_no_traces(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, and the function works."""
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert tracing.configured("otlp", "patch_pods") is tracing.no_spans
    (message,) = caplog.messages
    assert "muster[traces]" in message


@pytest.mark.thorough
def test_opentelemetry_is_loaded_only_when_asked_for() -> None:
    """It would be a fifth of a cold start."""
    statement = (
        "import sys\n"
        "from muster.runtime.http import app\nfrom muster.runtime.telemetry import tracing\n"
        "assert tracing.configured('', 'patch_pods') is tracing.no_spans\n"
        "before = 'opentelemetry' in sys.modules\n"
        "made = tracing.configured('otlp', 'patch_pods')\n"
        "print(before, made is tracing.no_spans)\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", statement], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert output.stdout == "False False\n"
