"""Traces: one span for each event, with child spans for its phases and its calls to the API server.

The parent comes from the header `traceparent` (W3C Trace Context), which Knative's broker passes on.
OpenTelemetry is an extra of the package and takes 0.1 s to import, so it is loaded only if traces are
switched on; otherwise spans do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from muster.runtime.telemetry.logs import LOGGER

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

OTLP = "otlp"

Note = Callable[[Mapping[str, str]], None]
"""Adds attributes to an open span."""


class Spans(Protocol):
    """A factory of spans."""

    def __call__(self, name: str, headers: Mapping[str, str] | None = None) -> AbstractContextManager[Note]:
        """Open a span until the `with` block ends."""


@contextmanager
def no_spans(name: str, headers: Mapping[str, str] | None = None) -> Iterator[Note]:  # noqa: ARG001 - as Spans
    """Spans that do nothing."""
    yield lambda _attributes: None


def spans_of(provider: TracerProvider) -> Spans:
    """Spans of an OpenTelemetry provider."""
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
    """Return the spans that the settings select."""
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
    """Return the trace context in the HTTP headers, else in the CloudEvent's tracing extension."""
    lower_case = {name.lower(): value for name, value in headers.items()}
    names = ("traceparent", "tracestate")
    context = {name: lower_case.get(name) or lower_case.get(f"ce-{name}") for name in names}
    return {name: value for name, value in context.items() if value}
