"""The simulated Knative ApiServerSource: same manifests, same events, same lost events.

The behaviour is that of the adapter of knative.dev/eventing v0.47.0 (`pkg/adapter/apiserver`).
"""

from muster.simulator.source.events import ChangeType, Mode, Sender, to_event
from muster.simulator.source.source import Source, namespaces_of, start_all
from muster.simulator.source.wiring import SourceSpec, WatchedKind

__all__ = [
    "ChangeType",
    "Mode",
    "Sender",
    "Source",
    "SourceSpec",
    "WatchedKind",
    "namespaces_of",
    "start_all",
    "to_event",
]
