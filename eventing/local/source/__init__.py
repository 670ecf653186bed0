"""Knative's ApiServerSource on one machine: the same YAML, the same events, the same losses.

What it does is measured on, or read from, the adapter of knative.dev/eventing v0.47.0
(`pkg/adapter/apiserver`).
"""

from eventing.local.source.events import Mode, Verb, to_event
from eventing.local.source.sending import Sender
from eventing.local.source.source import Source, namespaces_of, start_all
from eventing.local.source.wiring import SourceSpec, WatchedKind

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
