"""Whatever bytes a client sends, both servers answer or close, and no function fails or writes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from muster import steps
from muster.cluster.http.client import Client
from muster.cluster.versioned import Versioned
from muster.runtime.config import Settings
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.handle import Handler
from muster.runtime.http.app import wall_clock
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support.raw_requests import STREAMS
from tests.unit.runtime.http.servers import SERVERS, Served, status, wait_until

FUNCTIONS = [*steps.step_names(), "dead_letter"]
ANSWERS = {0, 100, 200, 202, 400, 404, 405, 408, 409, 411, 413, 414, 417, 431, 501, 505}
"""0: the connection was closed without an answer. Neither 500, a bug, nor 503: the cluster is there."""
EXAMPLES = 15
SETTINGS = Settings(
    waiting=27, sweep_jitter_seconds=0.001, dead_letter_namespace="muster-system", body_seconds=2.0
)


@dataclass(frozen=True)
class FuzzedFunction:
    """One function behind one server."""

    served: Served
    receiver: Any
    api: ApiServer


@pytest.fixture(scope="module", params=SERVERS)
def functions(request: pytest.FixtureRequest) -> Iterator[dict[str, FuzzedFunction]]:
    """All functions behind one of the servers, and an API server behind them."""
    with ApiServer() as api, ExitStack() as stack:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "muster-system"}}
        api.load([*resource_definitions(), namespace])
        targets = {}
        for name in FUNCTIONS:
            cluster = Versioned(Client.for_server(api.url, user_agent=f"muster-{name}"))
            receiver: Any = (
                DeadLetters(cluster, SETTINGS, wall_clock)
                if name == "dead_letter"
                else Handler(steps.step_named(name), cluster, SETTINGS, wall_clock)
            )
            served = stack.enter_context(request.param(receiver, cluster))
            targets[name] = FuzzedFunction(served, receiver, api)
        yield targets


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_bytes_make_a_function_fail(
    functions: dict[str, FuzzedFunction], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Every answer is one of the documented ones, nothing is logged as a bug, and nothing is kept open."""
    target = functions[name]
    before = uids(target.api)

    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(stream=STREAMS)
    def send(stream: bytes) -> None:
        received = sent(target.served, stream)
        assert received == b"" or received.startswith(b"HTTP/1."), received[:80]
        assert status(received) in ANSWERS, received[:300]

    send()
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
    assert uids(target.api) == before
    assert wait_until(lambda: not target.served.open_connections(), 4)
    assert target.served.bodies.taken == 0
    assert status(target.served.exchange(b"GET /health/liveness HTTP/1.1\r\nHost: a\r\n\r\n")) == 200


def uids(api: ApiServer) -> set[str]:
    """The objects of the cluster but ConfigMaps, as which dead letters are stored."""
    return {body["metadata"]["uid"] for body in api.snapshot() if body["kind"] != "ConfigMap"}


def sent(served: Served, stream: bytes) -> bytes:
    """Send bytes and end the sending; what is answered before the connection is closed."""
    received = b""
    with served.connect() as connection:
        try:
            connection.sendall(stream)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                received += part
        except TimeoutError:
            raise  # neither an answer nor an end
        except OSError:
            pass  # an answer may get lost where the server closes before it has read everything
    return received
