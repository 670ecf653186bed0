"""The fields of Knative's kinds that eventing/ uses, and no others.

From the CRDs of knative/eventing v0.47 (config/core/resources). The stories with Knative apply what eventing/
has to the real thing.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Strict(BaseModel):
    """A field that is not named below is a typing error: an API server drops it silently."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


class Reference(Strict):
    """Names an object; its own namespace where none is given."""

    api_version: str
    kind: str
    name: str
    namespace: str | None = None


class Destination(Strict):
    """Where events go."""

    ref: Reference | None = None
    uri: str | None = None


class DeliverySpec(Strict):
    """How often and how long (durations as ISO 8601)."""

    retry: int = Field(ge=0)
    backoff_policy: Literal["linear", "exponential"]
    backoff_delay: str = Field(pattern=r"^PT[0-9.]+[SM]$")
    timeout: str | None = Field(default=None, pattern=r"^PT[0-9.]+[SM]$")
    dead_letter_sink: Destination | None = None


class BrokerSpec(Strict):
    """eventing.knative.dev/v1."""

    delivery: DeliverySpec | None = None


class Filter(Strict):
    """One filter of a trigger; exactly one field is set."""

    exact: dict[str, str] | None = None
    prefix: dict[str, str] | None = None
    suffix: dict[str, str] | None = None
    all: list[Filter] | None = None
    any: list[Filter] | None = None


class TriggerSpec(Strict):
    """eventing.knative.dev/v1."""

    broker: str
    filters: list[Filter]
    subscriber: Destination
    delivery: DeliverySpec | None = None


class WatchedResource(Strict):
    """One kind that a source watches."""

    api_version: str
    kind: str
    selector: dict[str, Any] | None = None


class ApiServerSourceSpec(Strict):
    """sources.knative.dev/v1."""

    mode: Literal["Resource", "Reference"]
    resources: list[WatchedResource] = Field(min_length=1)
    namespace_selector: dict[str, Any] | None = None
    service_account_name: str
    sink: Destination


class PingSourceSpec(Strict):
    """sources.knative.dev/v1."""

    schedule: str
    sink: Destination


class From(Strict):
    """Who may send: a reference or a subject, with `*` at its end at most."""

    ref: Reference | None = None
    sub: str | None = Field(default=None, pattern=r"^[^*]+\*?$")


class To(Strict):
    """What is guarded."""

    ref: Reference


class EventPolicySpec(Strict):
    """eventing.knative.dev/v1alpha1."""

    to: list[To] = Field(min_length=1)
    from_: list[From] = Field(alias="from", min_length=1)


SPECS: dict[tuple[str, str], type[Strict]] = {
    ("eventing.knative.dev/v1", "Broker"): BrokerSpec,
    ("eventing.knative.dev/v1", "Trigger"): TriggerSpec,
    ("eventing.knative.dev/v1alpha1", "EventPolicy"): EventPolicySpec,
    ("sources.knative.dev/v1", "ApiServerSource"): ApiServerSourceSpec,
    ("sources.knative.dev/v1", "PingSource"): PingSourceSpec,
}
"""The spec of each kind, by apiVersion and kind."""
