"""Replays of whole recordings end with the recorded groups, in whatever order the events arrive.

`once` is the stream as it came. The others are what a broker and a source may make of it: everything twice,
in reverse, or with an event missing, which a sweep makes good.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest

from muster.objects import yaml_files
from muster.replay.files import RecordedRequest
from muster.replay.replay import (
    SWEEP,
    ReplayResult,
    ReplayStack,
    event_of,
    is_musters_group,
    replay,
)
from muster.replay.snapshots import Object, Objects, RecordedObjects
from muster.replay.summary import is_gated
from muster.simulator.broker import Answer
from tests.replays import recorded
from tests.replays.golden import CONDITIONS
from tests.replays.update import conditions_of

NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
MODES = ("resource", "reference")


@dataclass(frozen=True)
class Moment:
    """A recording at one moment, and the later moment whose groups the replay must end with."""

    story: str
    at: str
    ends_as: str

    @property
    def world(self) -> RecordedObjects:
        """The objects at the first moment."""
        return recorded.world_at(self.story, self.at)

    @property
    def expected(self) -> list[Object]:
        """The groups at the later moment; PodGroups end with the work now."""
        groups = groups_of(recorded.world_at(self.story, self.ends_as).objects)
        return [group for group in groups if group["kind"] == "Workload" or self.at != "complete"]


def groups_of(objects: Objects) -> list[Object]:
    """Return Workloads and PodGroups without fields that the API server sets or that differ between runs."""
    return sorted(
        (
            {
                "kind": obj["kind"],
                "name": f"{obj['metadata']['namespace']}/{obj['metadata']['name']}",
                "labels": obj["metadata"]["labels"],
                "owners": [
                    (owner["kind"], owner["name"], owner.get("controller", False))
                    for owner in obj["metadata"]["ownerReferences"]
                ],
                "spec": _without_modes(obj["spec"]),
            }
            for obj in objects
            if is_musters_group(obj)
        ),
        key=lambda obj: (obj["kind"], obj["name"]),
    )


def _without_modes(value: Any) -> Any:
    """The value without disruptionMode: that of gangs was `single` when the recordings were made."""
    if isinstance(value, list):
        return [_without_modes(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _without_modes(below) for name, below in value.items() if name != "disruptionMode"}
    return value


_BORN, _MADE, _GROUPED = "before create_workload", "before create_pod_groups", "before patch_pods"
MOMENTS = [
    pytest.param(Moment(story, at, ends_as), id=f"{story}, {at}: as {ends_as}")
    for story, ends in {
        "1-torch": {
            "before TrainJob": "before TrainJob",
            _BORN: "all bound",
            _MADE: "all bound",
            _GROUPED: "all bound",
            "all bound": "all running",
            "all running": "complete",
            "complete": "complete",
            "deleted": "deleted",
        },
        "2-torchtune": {
            _BORN: "initializers running",
            _MADE: "initializers running",
            _GROUPED + " (initializers)": "initializers running",
            "initializers running": _GROUPED + " (trainer)",
            _GROUPED + " (trainer)": "trainer running",
            "trainer running": "complete",
            "deleted": "deleted",
        },
        "4-job-scaled": {
            _BORN: "running",
            _MADE: "running",
            _GROUPED: "running",
            # minCount is raised once the new pods are bound, and none is bound yet.
            "before resize_gang to 6": "running",
            "before patch_pods (scaled to 6)": "running with 6",
            "running with 6": "running with 6",
            "before resize_gang to 2": "running with 2",
            "running with 2": "running with 2",
            "deleted": "deleted",
        },
        "5-does-not-fit": {
            _BORN: "unschedulable",
            _MADE: "unschedulable",
            _GROUPED: "unschedulable",
            "unschedulable": "node added, all bound",
            "node added, all bound": "complete",
            "deleted": "deleted",
        },
    }.items()
    for at, ends_as in ends.items()
]
FIRST = [
    pytest.param(moment, id=moment.story)
    for (moment,) in (case.values for case in MOMENTS)
    if isinstance(moment, Moment) and moment.at == _BORN
]


def run(moment: Moment, captures: tuple[RecordedRequest, ...], *, sweep: bool = False) -> ReplayResult:
    """Replay at a moment; assert that no event becomes a dead letter."""
    end = replay(captures, moment.world.objects, NOW, sweep=sweep)
    assert end.dead_letters == ()
    return end


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stream_ends_with_the_groups_that_were_recorded(moment: Moment) -> None:
    """Workloads, PodGroups, minCounts, labels and owners are those of the recording; no gate is left.

    The conditions of the owner were reviewed once and are in conditions.yaml.
    """
    golden: dict[str, Any] = yaml_files.load(CONDITIONS.read_text())
    end = run(moment, recorded.events(moment.story))
    assert groups_of(end.objects) == moment.expected
    if moment.expected:
        assert [body for body in end.objects if body["kind"] == "Pod" and is_gated(body)] == []
    assert conditions_of(end.objects) == golden[moment.story][moment.at]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_stream_may_come_in_reverse(moment: Moment) -> None:
    """The order of events does not matter."""
    assert groups_of(run(moment, recorded.events(moment.story)[::-1]).objects) == moment.expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("moment", FIRST)
def test_a_stream_may_come_twice(moment: Moment, mode: str) -> None:
    """Delivering everything twice changes no group, in either mode."""
    assert groups_of(run(moment, recorded.events(moment.story, mode) * 2).objects) == moment.expected


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("moment", FIRST)
def test_any_event_may_be_lost_if_a_sweep_follows(moment: Moment, mode: str) -> None:
    """Without any single event, one sweep later the groups are the same and no gate is left.

    A function remembers nothing, so an event without a write could as well not have come: only those
    that caused a write are left out, one at a time.
    """
    stream = recorded.events(moment.story, mode)
    with ReplayStack(moment.world.objects, NOW) as stack:
        mattered = [number for number, request in enumerate(stream) if stack.deliver(event_of(request))]
    assert mattered
    for number in mattered:
        end = run(moment, (*stream[:number], *stream[number + 1 :]), sweep=True)
        assert groups_of(end.objects) == moment.expected, stream[number].location
        assert [body for body in end.objects if body["kind"] == "Pod" and is_gated(body)] == []


@pytest.mark.parametrize("moment", FIRST)
def test_replies_may_be_lost_if_a_sweep_follows(moment: Moment) -> None:
    """Without them no group is made by events; each costs the wait for the next sweep, not more."""
    with ReplayStack(moment.world.objects, NOW) as stack:
        with mock.patch("muster.replay.replay.Answer", return_value=Answer(202)):
            for request in recorded.events(moment.story):
                stack.deliver(event_of(request))
        assert {group["kind"] for group in groups_of(stack.server.snapshot())} == {"Workload"}
        stack.deliver(SWEEP)
        assert groups_of(stack.server.snapshot()) == moment.expected


@pytest.mark.parametrize("moment", FIRST)
def test_a_sweep_alone_does_everything(moment: Moment) -> None:
    """Without any events, sweeps create the same groups."""
    assert groups_of(run(moment, (), sweep=True).objects) == moment.expected
