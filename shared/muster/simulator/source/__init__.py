"""The simulated Knative ApiServerSource: same manifests, same events, same lost events.

The behaviour is that of the adapter of knative.dev/eventing v0.47.0 (`pkg/adapter/apiserver`), as measured or
read from its source.
"""

from muster.simulator.source.events import ChangeType, Mode, to_event
from muster.simulator.source.sending import Sender
from muster.simulator.source.source import Source, TooManyWatchesError, namespaces_of, start_all
from muster.simulator.source.wiring import SourceSpec, WatchedKind

__all__ = [
    "ChangeType",
    "Mode",
    "Sender",
    "Source",
    "SourceSpec",
    "TooManyWatchesError",
    "WatchedKind",
    "namespaces_of",
    "start_all",
    "to_event",
]
