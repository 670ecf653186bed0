"""The interface that the Flask app calls: a step's `Handler`, or `DeadLetters`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from muster.cluster.permissions import Permissions
from muster.runtime.config import Settings
from muster.runtime.handle import InFlight
from muster.runtime.http.bodies import BodyRefusal
from muster.runtime.http.responses import HttpAnswer
from muster.runtime.telemetry.metrics import Metrics


class Receiver(Protocol):
    """Answers requests that should be CloudEvents: a step's `Handler`, or `DeadLetters`."""

    @property
    def name(self) -> str:
        """The name of the function: `create_workload`."""
        ...

    @property
    def manager(self) -> str:
        """The field manager: `muster-create-workload`."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings of the function."""
        ...

    @property
    def permissions(self) -> Permissions:
        """The permissions that the service account needs."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace in which it needs them; empty for all."""
        ...

    @property
    def in_flight(self) -> InFlight:
        """The events in work."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Counters of the events handled so far."""
        ...

    def handle(self, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """Return the answer to a request; never raises."""
        ...

    def refuse(self, headers: Mapping[str, str], refusal: BodyRefusal, length: int | None) -> HttpAnswer:
        """Return the answer to a request whose body was not read; `length` is its Content-Length."""
        ...
