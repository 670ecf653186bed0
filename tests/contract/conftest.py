"""The real API servers that the contract is checked against, started once and only when asked for."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster import cluster
from tests.cluster.control_plane import Release

HERE = Path(__file__).parent


class Servers:
    """Real API servers, each started when somebody asks for it first."""

    def __init__(self) -> None:
        self._started: dict[tuple[str, tuple[str, ...]], cluster.Cluster] = {}
        self._stops = ExitStack()

    def get(self, minor: str, *controllers: str) -> cluster.Cluster:
        """Returns the server of a release, JobSet's and Trainer's types served, with these controllers."""
        if (minor, controllers) not in self._started:
            options = cluster.Options(Release(minor), controllers=controllers)
            self._started[minor, controllers] = self._stops.enter_context(cluster.running(options))
        return self._started[minor, controllers]

    def close(self) -> None:
        """Stops them all."""
        self._started.clear()
        self._stops.close()


_SERVERS = pytest.StashKey[Servers]()


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Iterator[Servers]:
    """The servers of this run."""
    made = pytestconfig.stash[_SERVERS] = Servers()
    yield made
    made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Stops the servers after the last contract case: idle, they would take a tenth of the stories' time."""
    yield
    if nextitem and HERE not in nextitem.path.parents and _SERVERS in item.config.stash:
        item.config.stash[_SERVERS].close()


@pytest.fixture(scope="module")
def bare_137(servers: Servers) -> cluster.Cluster:
    """Kubernetes 1.37.1: API server and etcd alone."""
    return servers.get("1.37")


@pytest.fixture(scope="module")
def managed_137(servers: Servers) -> cluster.Cluster:
    """Kubernetes 1.37.1 with the controllers that carry out deletions."""
    return servers.get("1.37", "collectors")


@pytest.fixture(scope="module", params=["1.37", "1.36"])
def real_server(servers: Servers, request: pytest.FixtureRequest) -> cluster.Cluster:
    """Each of the two releases in turn."""
    return servers.get(request.param)
