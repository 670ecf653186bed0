"""The simulated Knative Broker: same manifests, filters, retries, replies and dead letters.

The behaviour is that of knative.dev/eventing v0.47.0 (multi-tenant broker, in-memory channel), as recorded in
tests/contract/broker.
"""

from muster.simulator.broker.broker import TTL, Broker, Ingress, RefusedError, Report
from muster.simulator.broker.delivery import Answer, Delivery, HttpTarget, NoAnswerError, Target
from muster.simulator.broker.events import CloudEvent, NotAnEventError
from muster.simulator.broker.wiring import PingSource, PingTimer, Trigger, Wiring

__all__ = [
    "TTL",
    "Answer",
    "Broker",
    "CloudEvent",
    "Delivery",
    "HttpTarget",
    "Ingress",
    "NoAnswerError",
    "NotAnEventError",
    "PingSource",
    "PingTimer",
    "RefusedError",
    "Report",
    "Target",
    "Trigger",
    "Wiring",
]
