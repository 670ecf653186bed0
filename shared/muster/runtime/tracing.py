"""Traces: one span for each event, with spans for its parts and its calls to the API server inside.

The parent is what the sender named in `traceparent` (W3C Trace Context), which Knative's broker passes on.
OpenTelemetry is an extra of the package and costs 0.1 s of import, so it is loaded only where traces are
asked for; everywhere else a span is nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from muster.runtime.logs import LOGGER

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

OTLP = "otlp"
_CARRIED = ("traceparent", "tracestate")

Note = Callable[[Mapping[str, str]], None]
"""Adds attributes to a span that is under way."""


class Spans(Protocol):
    """Makes spans."""

    def __call__(self, name: str, headers: Mapping[str, str] | None = None) -> AbstractContextManager[Note]:
        """A span for as long as the block runs.

        Args:
            name: of the span.
            headers: of the request that it answers; None where it is part of another span.
        """
        ...


@contextmanager
def no_spans(name: str, headers: Mapping[str, str] | None = None) -> Iterator[Note]:  # noqa: ARG001 - as Spans
    """A span that is nothing."""
    yield lambda _attributes: None


def spans_of(provider: TracerProvider) -> Spans:
    """Spans of OpenTelemetry, by a provider that is set up."""
    from opentelemetry.trace import SpanKind  # noqa: PLC0415 - see the module's docstring
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    tracer = provider.get_tracer("muster")
    propagator = TraceContextTextMapPropagator()

    @contextmanager
    def spans(name: str, headers: Mapping[str, str] | None = None) -> Iterator[Note]:
        context = None if headers is None else propagator.extract(_carrier(headers))
        kind = SpanKind.INTERNAL if headers is None else SpanKind.CONSUMER
        with tracer.start_as_current_span(name, context=context, kind=kind) as span:
            yield lambda attributes: span.set_attributes(dict(attributes))

    return spans


def configured(traces: str, function: str) -> Spans:
    """Spans as the settings ask for them.

    They are sent where OTEL_EXPORTER_OTLP_ENDPOINT says, in the background; what cannot be sent is dropped.

    Args:
        traces: `otlp`, or empty for none.
        function: the name of the function, `service.name` of its spans.
    """
    if traces != OTLP:
        return no_spans
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider as SdkProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        LOGGER.warning("MUSTER_TRACES=%s: no traces without the extra muster[traces]: %s", traces, error)
        return no_spans
    provider = SdkProvider(resource=Resource.create({"service.name": f"muster-{function.replace('_', '-')}"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return spans_of(provider)


def _carrier(headers: Mapping[str, str]) -> dict[str, str]:
    """Trace context of HTTP, else of the CloudEvent's distributed tracing extension."""
    known = {name.lower(): value for name, value in headers.items()}
    found = {name: known.get(name) or known.get(f"ce-{name}") for name in _CARRIED}
    return {name: value for name, value in found.items() if value}
