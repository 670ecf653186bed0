"""Traces: one span for each event, with child spans for its phases and its calls to the API server.

OpenTelemetry is an extra of the package and takes 0.1 s to import, so it is loaded only if traces are
switched on; otherwise spans do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from muster.runtime.telemetry.logs import LOGGER

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

Note = Callable[[Mapping[str, str]], None]
"""Adds attributes to an open span."""

Spans = Callable[..., AbstractContextManager[Note]]
"""Opens a span of a name, below the `traceparent` of HTTP headers if they are given."""


@contextmanager
def no_spans(*_arguments: object) -> Iterator[Note]:
    """Spans that do nothing."""
    yield lambda _attributes: None


def spans_of(provider: TracerProvider) -> Spans:
    """Spans of an OpenTelemetry provider."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

    tracer, propagator = provider.get_tracer("muster"), TraceContextTextMapPropagator()

    @contextmanager
    def spans(name: str, headers: Mapping[str, str] | None = None) -> Iterator[Note]:
        lower_case = {key.lower(): value for key, value in (headers or {}).items()}
        context = None if headers is None else propagator.extract(lower_case)
        with tracer.start_as_current_span(name, context) as span:
            yield lambda attributes: span.set_attributes(dict(attributes))

    return spans


def configured(traces: str, function: str) -> Spans:
    """Return the spans that the settings select."""
    if traces != "otlp":
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
