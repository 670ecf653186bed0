"""An embedded API server and a plain client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.simulator.apiserver import ApiServer
from tests.cluster.api import KubernetesApi


@pytest.fixture
def server() -> Iterator[ApiServer]:
    """A server with everything Muster needs switched on."""
    with ApiServer() as started:
        yield started


@pytest.fixture
def api(server: ApiServer) -> KubernetesApi:
    """A client of that server."""
    return KubernetesApi(server.url)
