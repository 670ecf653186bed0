"""The simulated Knative Broker: same manifests, filters, retries, replies and dead letters.

The behaviour is that of knative.dev/eventing v0.47.0 (multi-tenant broker, in-memory channel), as measured or
read from its source.
"""

from muster.simulator.broker.attributes import NotAnEventError
from muster.simulator.broker.broker import TTL, AnswerTooLongError, Broker, Observer, RefusedError, Report
from muster.simulator.broker.events import CloudEvent
from muster.simulator.broker.ingress import Ingress
from muster.simulator.broker.ping import PingTimer
from muster.simulator.broker.targets import Answer, HttpTarget, NoAnswerError, Target
from muster.simulator.broker.wiring import PingSource, Trigger, Wiring

__all__ = [
    "TTL",
    "Answer",
    "AnswerTooLongError",
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
