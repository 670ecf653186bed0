"""What the Flask app and the servers need of whatever takes events in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from muster.cluster.permissions import Permissions
from muster.runtime.config import Settings
from muster.runtime.handle import InFlight
from muster.runtime.metrics import Metrics
from muster.runtime.responses import HttpAnswer


class Receiver(Protocol):
    """Answers requests that should be CloudEvents: a step's `Handler`, or `DeadLetters`."""

    @property
    def name(self) -> str:
        """Of the function: `create_workload`."""
        ...

    @property
    def manager(self) -> str:
        """Its field manager: `muster-create-workload`."""
        ...

    @property
    def settings(self) -> Settings:
        """Limits, and what is said in logs."""
        ...

    @property
    def permissions(self) -> Permissions:
        """What its service account must be allowed."""
        ...

    @property
    def namespace(self) -> str:
        """Where it must be allowed that; empty for all namespaces."""
        ...

    @property
    def in_flight(self) -> InFlight:
        """The events being worked on."""
        ...

    @property
    def metrics(self) -> Metrics:
        """What became of them so far."""
        ...

    def handle(self, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """The answer to a request; never raises."""
        ...

    def too_large(self, headers: Mapping[str, str], length: int | None) -> HttpAnswer:
        """The answer to a body above the limit."""
        ...
