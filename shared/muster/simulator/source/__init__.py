"""Knative's ApiServerSource on one machine: the same YAML, the same events, the same losses.

What it does is measured on, or read from, the adapter of knative.dev/eventing v0.47.0
(`pkg/adapter/apiserver`).
"""

from muster.simulator.source.events import Mode, Verb, to_event
from muster.simulator.source.sending import Sender
from muster.simulator.source.source import Source, namespaces_of, start_all
from muster.simulator.source.wiring import SourceSpec, WatchedKind

__all__ = [
    "Mode",
    "Sender",
    "Source",
    "SourceSpec",
    "Verb",
    "WatchedKind",
    "namespaces_of",
    "start_all",
    "to_event",
]
