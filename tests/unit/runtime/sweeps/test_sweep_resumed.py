"""The next sweep resumes where the limit ended the last one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bench import world
from bench.world import STEPS, BenchmarkCluster
from muster.runtime import steps
from muster.runtime.config import Settings, connect
from muster.runtime.handle import Handler
from muster.runtime.http.app import wall_clock
from muster.simulator.apiserver import ApiServer, resource_definitions

GANGS = 3
"""So many run, and so many more have each lost something."""


@pytest.fixture(name="server", scope="module")
def _server() -> Iterator[tuple[ApiServer, BenchmarkCluster]]:
    with ApiServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "LOST_ONE_IN", 1)
        server.load(resource_definitions())
        made = BenchmarkCluster(server, GANGS)
        made.fill()
        yield server, made


@pytest.mark.thorough
@pytest.mark.xdist_group("sweep-resumed")
@pytest.mark.parametrize("name", STEPS)
def test_one_object_a_sweep_until_all_are_repaired(
    server: tuple[ApiServer, BenchmarkCluster], name: str
) -> None:
    """With room for one each sweep repairs another one, and none twice."""
    api, gangs = server
    gangs.lose(name)
    cluster = connect(Settings(api_server=api.url))
    settings = Settings(sweep_jitter_seconds=0, sweep_limit=1, deadline_seconds=60)
    handler = Handler(steps.step_named(name), cluster, settings, wall_clock)
    writes = [0]
    for number in range(GANGS + 2):
        headers = {"ce-specversion": "1.0", "ce-source": "/tests", "ce-type": "dev.muster.sweep"}
        assert handler.handle(headers | {"ce-id": str(number)}, b"").status == 202
        writes.append(_writes(handler))
    gangs.repair()
    each = [after - before for before, after in pairwise(writes)]
    lost = 1 if name == "mark_runtime" else GANGS
    repaired = [count for count in each if count]
    assert len(repaired) == lost
    assert len(set(repaired)) == 1
    assert each[lost + 1 :] == [0] * (GANGS + 1 - lost)


def _writes(handler: Handler) -> int:
    """How often the function has written so far, as its own metrics have it."""
    families = text_string_to_metric_families(handler.metrics.exposition().decode())
    calls = [
        sample for family in families for sample in family.samples if sample.name == "muster_api_calls_total"
    ]
    return sum(int(call.value) for call in calls if call.labels["verb"] not in {"get", "list"})
