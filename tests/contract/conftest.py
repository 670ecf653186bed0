"""The real API servers of the contract tests, each started once, when a test first needs it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster import cluster
from tests.cluster.control_plane import Release

HERE = Path(__file__).parent


class Servers:
    """Real API servers by release and controllers, started on first use."""

    def __init__(self) -> None:
        self._started: dict[tuple[str, tuple[str, ...]], cluster.RealCluster] = {}
        self._stops = ExitStack()

    def get(self, minor: str, *controllers: str) -> cluster.RealCluster:
        """Return the cluster of a release with these controllers and the CRDs of JobSet and Trainer."""
        if (minor, controllers) not in self._started:
            options = cluster.ClusterOptions(Release(minor), controllers=controllers)
            self._started[minor, controllers] = self._stops.enter_context(cluster.running(options))
        return self._started[minor, controllers]

    def close(self) -> None:
        """Stop all servers."""
        self._started.clear()
        self._stops.close()


_SERVERS = pytest.StashKey[Servers]()
EVERY_SERVER = ["embedded", *(pytest.param(minor, marks=pytest.mark.real) for minor in ("1.37", "1.36"))]
"""The embedded API server and the real ones by release, as parameters of a fixture."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the cases of Knative's own broker, which measure time, while little else runs."""
    items.sort(key=lambda item: item.path != HERE / "broker" / "test_knative.py")


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Iterator[Servers]:
    """The servers of this run."""
    servers = pytestconfig.stash[_SERVERS] = Servers()
    yield servers
    servers.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Stop the servers after the last contract case; idle, they would slow the stories down by a tenth."""
    yield
    if nextitem and HERE not in nextitem.path.parents and _SERVERS in item.config.stash:
        item.config.stash[_SERVERS].close()


@pytest.fixture(scope="module")
def bare_137(servers: Servers) -> cluster.RealCluster:
    """Kubernetes 1.37.1: API server and etcd alone."""
    return servers.get("1.37")


@pytest.fixture(scope="module", params=["1.37", "1.36"])
def real_server(servers: Servers, request: pytest.FixtureRequest) -> cluster.RealCluster:
    """API server and etcd of each release in turn."""
    return servers.get(request.param)
