"""What brings events to Muster's functions in the stories: the simulated broker, or real Knative Eventing."""

from __future__ import annotations

from typing import Protocol

from muster.simulator.broker import CloudEvent


class Eventing(Protocol):
    """Sources, broker and triggers of one installation.

    Attributes:
        redrive_options: options with which `muster redrive` reaches the broker.
    """

    redrive_options: list[str]

    def start(self) -> None:
        """Start, with sources and sweeps; the functions are listening."""

    def stop(self) -> None:
        """Stop everything that was started."""

    def serve(self, name: str, url: str) -> None:
        """Deliver the events of a Service's functions to this URL, and paths on it, from now on."""

    def start_adapters(self) -> None:
        """Start the adapters of all sources whose kinds are served, and wait until they watch."""

    def stop_adapters(self) -> None:
        """Stop every adapter, so that Muster gets no events of changes."""

    def start_sweeps(self) -> None:
        """Start the periodic sweeps."""

    def stop_sweeps(self) -> None:
        """Stop the periodic sweeps."""

    def publish(self, event: CloudEvent) -> None:
        """Send an event to the broker, which must accept it."""

    def idle(self, seconds: float) -> bool:
        """Wait until the broker has delivered everything; return whether it has."""

    def settle(self) -> None:
        """Wait until the sources watch everything that they should, also in namespaces made just now."""
