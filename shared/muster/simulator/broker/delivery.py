"""Delivery options of a broker: retries, waits, failures and the attributes of dead letters.

As knative.dev/eventing v0.47.0 `pkg/kncloudevents` does it (retries.go, event_dispatcher.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from muster.kustomize import UnsupportedManifestError

LONGEST_ANSWER = 768
"""Bytes of a failed answer's body that a dead letter can carry, as 1024 characters of base64.

Knative 0.47.0 means to cut longer ones, but its dispatcher ends with a panic: it encodes the whole body into
a buffer of 1024 bytes (`dispatchExecutionInfoTransformers` in pkg/kncloudevents/event_dispatcher.go).
"""

_LARGEST_EXPONENT = 60
"""The largest power of two that multiplies a backoff delay: a float overflows at 1,024."""

_LONGEST_SECONDS = 366 * 24 * 3600.0
"""The longest wait; threads cannot wait for 300 years."""

_RETRIED = frozenset({404, 408, 409, 429, *range(500, 600)})
_DURATION = TypeAdapter(timedelta)
_KNOWN = {"retry", "backoffPolicy", "backoffDelay", "timeout", "deadLetterSink"}


@dataclass(frozen=True)
class Delivery:
    """A DeliverySpec; the default is Knative's without one: one attempt, no time-out, no dead letter.

    Attributes:
        retry: attempts after the first.
        policy: `linear` or `exponential`; empty means no waiting.
        delay: seconds.
        timeout: seconds that one attempt may take; None means for ever.
        dead_letter: the Service that gets what could not be delivered, as from `destination`.
    """

    retry: int = 0
    policy: str = ""
    delay: float = 0.0
    timeout: float | None = None
    dead_letter: str = ""

    @classmethod
    def from_manifest(cls, spec: Mapping[str, Any]) -> Delivery:
        """Return a `delivery` block.

        Raises:
            UnsupportedManifestError: a field other than retry, backoffPolicy, backoffDelay, timeout and
                deadLetterSink (`retryAfterMax` is alpha and refused by Knative too), a broken duration, a
                negative number of retries, a time-out of 0, or a sink that is not a Service.
        """
        if unknown := sorted(set(spec) - _KNOWN):
            raise UnsupportedManifestError(
                f"delivery: {', '.join(unknown)} is not understood by the local broker"
            )
        policy = spec.get("backoffPolicy", "")
        if policy not in ("", "linear", "exponential"):
            raise UnsupportedManifestError(
                f"delivery.backoffPolicy: {policy!r} is neither linear nor exponential"
            )
        retry, timeout = int(spec.get("retry", 0)), seconds_of(spec["timeout"]) if "timeout" in spec else None
        if retry < 0 or timeout == 0:
            raise UnsupportedManifestError(f"delivery: retry {retry} or timeout {timeout} is too small")
        sink = spec.get("deadLetterSink")
        return cls(
            retry=retry,
            policy=policy,
            delay=seconds_of(spec["backoffDelay"]) if "backoffDelay" in spec else 0.0,
            timeout=timeout,
            dead_letter=destination(sink) if sink else "",
        )

    def or_sink_of(self, broker: Delivery) -> Delivery:
        """Return this delivery with its own dead letter sink, else the broker's (`resolveDeadLetterSink`)."""
        return self if self.dead_letter else replace(self, dead_letter=broker.dead_letter)

    def wait_before_retry(self, number: int) -> float:
        """Return the seconds before a retry. The first is number 0: a linear policy retries once at once."""
        factors = {"": 0.0, "linear": float(number), "exponential": 2.0 ** min(number, _LARGEST_EXPONENT)}
        return min(self.delay * factors[self.policy], _LONGEST_SECONDS)


def destination(spec: Mapping[str, Any]) -> str:
    """Return Service and path that a destination (`duckv1.Destination`) refers to.

    `create-workload` of a reference alone, `muster/create-workload` with the relative `uri` /create-workload,
    which Knative resolves against the address of the reference.

    Raises:
        UnsupportedManifestError: there is no reference, or the `uri` is an address of its own or no URL.
    """
    name: str = (spec.get("ref") or {}).get("name", "")
    try:
        uri = urlsplit(spec.get("uri", ""))
    except ValueError as error:  # `//[`
        raise UnsupportedManifestError(f"uri {spec['uri']!r}: {error}") from None
    if not name or uri.scheme or uri.netloc:
        raise UnsupportedManifestError("the local broker knows subscribers by `ref`, not by `uri`")
    path = uri.path.strip("/")
    return f"{name}/{path}" if path else name


def is_retried(status: int) -> bool:
    """Whether an answer is worth another attempt; status 0 stands for no answer at all.

    A `Retry-After` header changes nothing: Knative honours it only with the alpha field retryAfterMax.
    """
    return status == 0 or status in _RETRIED


def is_success(status: int) -> bool:
    """Whether an answer says that the event was taken."""
    return status in range(200, 300)


def seconds_of(text: str) -> float:
    """Return the seconds of an ISO 8601 duration of weeks or less, such as `PT0.2S`.

    Raises:
        UnsupportedManifestError: the text is no duration, is longer than a year, or has months or years.
    """
    date = text.partition("T")[0]
    # pydantic also reads `1 day` and `00:10`, and counts 30 days for a month.
    if not date.startswith("P") or set(date) & {"Y", "M"}:
        raise UnsupportedManifestError(f"{text!r} is no ISO 8601 duration of weeks, days and less")
    try:
        seconds = _DURATION.validate_python(text).total_seconds()
    except ValidationError as error:
        raise UnsupportedManifestError(f"{text!r} is not an ISO 8601 duration") from error
    if seconds > _LONGEST_SECONDS:
        raise UnsupportedManifestError(f"{text!r} is longer than a year")
    return seconds
