"""Ports of components that start at the same time."""

from __future__ import annotations

from tests.cluster.processes import free_ports


def test_components_that_start_one_after_another_get_different_ports() -> None:
    """None of them listens yet when the port of the next one is chosen."""
    ports = [port for _ in range(60) for port in free_ports(4)]
    assert len(set(ports)) == len(ports)
