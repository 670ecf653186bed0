"""Knative's broker on one machine: the same YAML, the same filters, retries, replies and dead letters.

What it does is measured on, or read from, knative.dev/eventing v0.47.0 (multi-tenant broker, in-memory
channel).
"""

from eventing.local.broker.broker import Broker, Observer, RefusedError, Report
from eventing.local.broker.events import CloudEvent, NotAnEventError
from eventing.local.broker.ingress import Ingress
from eventing.local.broker.ping import PingTimer
from eventing.local.broker.targets import Answer, HttpTarget, NoAnswerError, Target
from eventing.local.broker.wiring import PingSource, Trigger, Wiring

__all__ = [
    "Answer",
    "Broker",
    "CloudEvent",
    "HttpTarget",
    "Ingress",
    "NoAnswerError",
    "NotAnEventError",
    "Observer",
    "PingSource",
    "PingTimer",
    "RefusedError",
    "Report",
    "Target",
    "Trigger",
    "Wiring",
]
