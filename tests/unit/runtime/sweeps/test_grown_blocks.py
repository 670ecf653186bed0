"""A Job in blocks that grows: the sweep makes the groups of its new blocks, as docs/policy.md says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.cluster.interface import Cluster
from muster.events.model import Happened, ResourceEvent
from muster.objects.resources import POD_GROUPS
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime import steps
from muster.runtime.config import Settings, connect
from muster.runtime.handle import Handler, run_step
from muster.runtime.http.app import wall_clock
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support.builders import (
    a_gang,
    a_job,
    a_namespace,
    a_pod_group,
    a_workload,
    ref,
    template_labelled,
    with_spec,
)
from tests.unit.runtime.fakes import an_event

BLOCK = "llama-main-33333333-{}".format
GROWN = a_job(template_labelled({"muster.dev/group-size": "2"}), with_spec(parallelism=4, completions=4))
"""Of a Job that had one block of two."""


@pytest.fixture(name="cluster")
def _cluster() -> Iterator[Cluster]:
    with ApiServer() as server:
        server.load(resource_definitions())
        workload = a_workload(a_gang("main", 2), root=GROWN)
        server.load([a_namespace(), GROWN, workload, a_pod_group(BLOCK(0), root=GROWN)])
        yield connect(Settings(api_server=server.url))


def _groups(cluster: Cluster) -> list[str]:
    return [group["metadata"]["name"] for group in cluster.list(POD_GROUPS, "team-a")]


def test_the_group_of_a_new_block_is_made_by_the_next_sweep(cluster: Cluster) -> None:
    """No step takes the Job's update for it: each look would cost reads, at every change of a status."""
    create, resize = map(steps.step_named, ("create_pod_groups", "resize_gang"))
    subject = create.predicate(ResourceEvent("1", Happened.UPDATE, ref(GROWN), GROWN))
    assert isinstance(subject, NoOp)
    assert subject.reason == Reason.NOT_FOR_THIS_STEP
    assert run_step(resize, cluster, ref(GROWN), wall_clock).reason == Reason.UP_TO_DATE
    assert _groups(cluster) == [BLOCK(0)]
    headers, _ = an_event(type="dev.muster.sweep")
    Handler(create, cluster, Settings(sweep_jitter_seconds=0), wall_clock).handle(headers, b"")
    assert _groups(cluster) == [BLOCK(0), BLOCK(1)]
