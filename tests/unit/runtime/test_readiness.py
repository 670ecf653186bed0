"""The readiness probe of a function, and its message when the cluster is not usable."""

from __future__ import annotations

import pytest

from muster.cluster import errors
from muster.objects.versions import HOW_TO_SWITCH_ON
from muster.runtime.http.readiness import Readiness
from tests.unit.runtime.fakes import FakeCluster, a_handler


def test_a_missing_api_is_reported_by_a_ready_function() -> None:
    """The message says how to switch it on."""
    cluster = FakeCluster()
    readiness = Readiness(a_handler(cluster=cluster))
    assert readiness.ask() == (True, "OK")
    cluster.served = frozenset({"v1/priorityclasses"})
    ready, message = readiness.ask()
    assert (ready, HOW_TO_SWITCH_ON in message) == (True, True)


@pytest.mark.parametrize("error", [errors.Unavailable("refused"), errors.Unauthorized("expired")])
def test_a_function_that_cannot_reach_the_api_server_is_not_ready(error: errors.ClusterError) -> None:
    """The message says why."""
    ready, message = Readiness(a_handler(cluster=FakeCluster(on_read=error))).ask()
    assert (ready, message) == (False, f"{type(error).__name__}: {error.message}")
