"""The requests of a sweep: pages, one read per namespace, and the repairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bench.world import LOST_ONE_IN, BenchmarkCluster
from muster.cluster.http import client
from muster.runtime import steps
from muster.runtime.config import Settings, connect
from muster.runtime.handle import Handler
from muster.runtime.http.app import wall_clock
from muster.simulator.apiserver import ApiServer, resource_definitions

PAGE = 100
"""Objects to a page here: the count of pages is what matters, and making 500 gangs takes long."""

OWNERS = PAGE + 1
PODS = 4 * OWNERS

OWNER_PAGES = {"list jobs": 2, "list jobsets": 1, "list trainjobs": 1}
GROUP_PAGES = {"list podgroups": 2, "list compositepodgroups": 1, "list workloads": 2}
POD_PAGES = {"list pods": -(-PODS // PAGE)}
PAGES = {
    "create_workload": {**OWNER_PAGES, **GROUP_PAGES, "list pods": 1},
    "create_pod_groups": {**OWNER_PAGES, **GROUP_PAGES},
    "patch_pods": {"list pods": 1, "list podgroups": 2},
    "resize_gang": {**OWNER_PAGES, **GROUP_PAGES, **POD_PAGES},
    "emit_conditions": {**OWNER_PAGES, **GROUP_PAGES, **POD_PAGES, "list events": 1},
    "mark_runtime": {"list clustertrainingruntimes": 1, "list trainingruntimes": 1},
}
"""Of kinds with more objects than fit into one page, more than one; pods that wait are few."""

LOST = OWNERS // LOST_ONE_IN
WRITES = {
    "create_workload": {"create workloads": LOST},
    "create_pod_groups": {"create podgroups": LOST},
    "patch_pods": {"patch pods": 4 * LOST},
    "resize_gang": {"patch podgroups": LOST},
    "emit_conditions": {"patch jobs/status": LOST, "create events": LOST},
    "mark_runtime": {"update clustertrainingruntimes": 1, "create events": 1},
}
READS_PER_REPAIR = 9
"""The step looks again before it writes, as it does for an event."""
READS_OF_ALL = 1
"""The administrator's ConfigMap: once for all owners."""


@pytest.fixture(name="world", scope="module")
def _world() -> Iterator[tuple[ApiServer, BenchmarkCluster]]:
    with ApiServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "PAGE", PAGE)
        server.load(resource_definitions())
        world = BenchmarkCluster(server, OWNERS)
        world.fill()
        yield server, world


def calls_of_a_sweep(server: ApiServer, name: str) -> Counter[str]:
    """How often each verb and resource was asked for, as the function's own metrics have it."""
    cluster = connect(Settings(api_server=server.url))
    settings = Settings(sweep_jitter_seconds=0, deadline_seconds=120)
    handler = Handler(steps.step_named(name), cluster, settings, wall_clock)
    headers = {"ce-specversion": "1.0", "ce-source": "/tests", "ce-type": "dev.muster.sweep", "ce-id": "1"}
    assert handler.handle(headers, b"").status == 202
    families = text_string_to_metric_families(handler.metrics.exposition().decode())
    calls = [
        sample for family in families for sample in family.samples if sample.name == "muster_api_calls_total"
    ]
    assert {call.labels["status"] for call in calls if call.labels["verb"] not in {"get", "list"}} <= {"ok"}
    return Counter({f"{call.labels['verb']} {call.labels['resource']}": int(call.value) for call in calls})


@pytest.mark.thorough
@pytest.mark.parametrize("name", PAGES)
def test_a_sweep_with_nothing_to_do_reads_pages(world: tuple[ApiServer, BenchmarkCluster], name: str) -> None:
    """Nothing for each owner or namespace. Where 1 % was lost, that alone is made."""
    server, cluster = world
    assert calls_of_a_sweep(server, name) == PAGES[name]
    cluster.lose(name)
    calls = calls_of_a_sweep(server, name)
    cluster.repair()
    writes = {what: count for what, count in calls.items() if what.split()[0] not in {"get", "list"}}
    assert writes == WRITES[name]
    reads = sum(PAGES[name].values()) + READS_OF_ALL + LOST * READS_PER_REPAIR
    assert calls.total() <= reads + sum(writes.values())
