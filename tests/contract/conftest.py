"""The real API servers that the contract is checked against, started once and only when asked for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster import cluster
from tests.cluster.control_plane import Release


@pytest.fixture(scope="session")
def bare_137() -> Iterator[cluster.Cluster]:
    """Kubernetes 1.37.1: API server and etcd alone, JobSet's and Trainer's types served."""
    with cluster.running(cluster.Options(Release("1.37"), controllers=())) as made:
        yield made


@pytest.fixture(scope="session")
def bare_136() -> Iterator[cluster.Cluster]:
    """Kubernetes 1.36.3, likewise."""
    with cluster.running(cluster.Options(Release("1.36"), controllers=())) as made:
        yield made


@pytest.fixture(scope="session")
def managed_137() -> Iterator[cluster.Cluster]:
    """Kubernetes 1.37.1 with the controllers that carry out deletions."""
    with cluster.running(cluster.Options(Release("1.37"), controllers=("collectors",))) as made:
        yield made


@pytest.fixture(scope="session")
def managed_136() -> Iterator[cluster.Cluster]:
    """Kubernetes 1.36.3, likewise."""
    with cluster.running(cluster.Options(Release("1.36"), controllers=("collectors",))) as made:
        yield made


@pytest.fixture(scope="session", params=["1.37", "1.36"])
def real_server(request: pytest.FixtureRequest) -> cluster.Cluster:
    """Each of the two releases in turn."""
    made: cluster.Cluster = request.getfixturevalue("bare_" + request.param.replace(".", ""))
    return made
