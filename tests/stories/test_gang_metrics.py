"""The metrics of gangs report what happened on the local stack."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import pytest
import urllib3
from prometheus_client.parser import text_string_to_metric_families

from muster.local.stories.story import STORIES
from muster.replay.snapshots import Object
from muster.simulator.controllers import node
from muster.testing import change
from tests.stories.stage import LocalStage

pytestmark = pytest.mark.usefixtures("in_process")


@pytest.fixture(name="stage")
def _stage() -> Iterator[LocalStage]:
    with LocalStage() as stage:
        yield stage


def samples(stage: LocalStage, name: str) -> dict[str, float]:
    """The values of a metric of all functions, summed by reason or kind."""
    values: dict[str, float] = {}
    for url in stage.stack.function_urls.values():
        text = urllib3.request("GET", f"{url}/metrics").data.decode()
        families = text_string_to_metric_families(text)
        for sample in chain.from_iterable(family.samples for family in families):
            if sample.name == name:
                label = sample.labels.get("reason", sample.labels.get("kind", ""))
                values[label] = values.get(label, 0.0) + sample.value
    return values


def twice(stage: LocalStage, *kinds: str) -> None:
    """Deliver an update of every object of these kinds twice."""
    for body in [body for kind in kinds for body in stage.all(kind)] * 2:
        stage.publish(change(body))
    stage.settle()


def test_a_gang_waits_and_is_placed_once(stage: LocalStage) -> None:
    """It is counted as waiting by the first sweep, and as placed by the next one after there was room."""
    (big,) = STORIES["does-not-fit"].manifest
    stage.create(big)
    stage.until("there is no room", lambda: stage.says("PodGroupsScheduled").get("reason") == "Unschedulable")
    stage.sweep()
    assert samples(stage, "muster_gangs_waiting") == {"Unschedulable": 1}
    assert set(samples(stage, "muster_gangs_waiting_since_timestamp_seconds")) == {"Unschedulable"}
    assert samples(stage, "muster_gangs_placed") == {"": 0}
    assert set(samples(stage, "muster_gang_placement_seconds_count").values()) == {0}
    stage.create(node("node-4", cpu="8", memory="32Gi", gpu=4))
    stage.until("all pods are bound", lambda: stage.bound() == 4)
    stage.until("the Job says so", lambda: stage.says("PodGroupsScheduled").get("status") == "True")
    twice(stage, "PodGroup", "Job")
    stage.sweep()
    count = {"TrainJob": 0, "JobSet": 0, "Job": 1}
    assert samples(stage, "muster_gang_placement_seconds_count") == count
    assert samples(stage, "muster_gangs_waiting") == {}
    assert samples(stage, "muster_gangs_waiting_since_timestamp_seconds") == {}
    assert samples(stage, "muster_gangs_placed") == {"": 1}
    assert samples(stage, "muster_gave_up_total") == {}


def test_a_grouping_failure_is_counted_once(stage: LocalStage) -> None:
    """Whichever function writes the condition; neither events that come twice nor sweeps count it again."""
    stage.create(a_broken_job("first"))
    stage.until("its pods run one by one", lambda: stage.bound() == 4)
    stage.until("the Job says why", lambda: stage.says("PodGroupsReady").get("reason") == "InvalidPolicy")
    twice(stage, "Workload", "PodGroup", "Job")
    stage.sweep()
    assert samples(stage, "muster_gave_up_total") == {"InvalidPolicy": 1}
    assert samples(stage, "muster_owners_without_gang") == {"InvalidPolicy": 1}
    stage.create(a_broken_job("second"))
    stage.until("its pods run too", lambda: stage.bound() == 8)
    stage.settle()
    stage.sweep()
    assert samples(stage, "muster_gave_up_total") == {"InvalidPolicy": 2}
    assert samples(stage, "muster_gangs_placed") == {"": 0}


def a_broken_job(name: str) -> Object:
    """A Job of four pods whose policy is broken."""
    (job,) = STORIES["indexed-job"].manifest
    job["metadata"] |= {"name": name, "annotations": {"muster.dev/pod-group-policy": "workload: {no: such}"}}
    return job
