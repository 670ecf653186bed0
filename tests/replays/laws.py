"""The laws of every step for every event; each raises AssertionError if it is broken.

Events may be delivered twice, out of order and late (Knative eventing specification, data-plane.md), and a
plan is a pure function of the observed objects. The laws follow from these two facts.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any

from muster.cluster.interface import Cluster
from muster.cluster.snapshot import Snapshot
from muster.cluster.versioned import Versioned
from muster.events.model import ResourceEvent, Sweep
from muster.events.parse import parse
from muster.policy.model import Decision, NoOp, Plan
from muster.replay.recorded_requests import STRUCTURED, RecordedRequest
from muster.replay.snapshots import Object, Objects
from muster.runtime.step import Step
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.direct import Direct
from tests.replays import recorded
from tests.replays.golden import GoldenCase

AGAIN = 3
"""Maximum runs of a step whose decision asks for a retry, for example while an object is being deleted."""


def same_input_same_plan(step: Step, case: GoldenCase) -> None:
    """Two runs on the same event and the same objects return equal decisions."""
    first = decisions(step, case.capture, Snapshot(case.objects), case.now)
    second = decisions(step, case.capture, Snapshot(case.objects), case.now)
    assert first == second, "the second plan differs from the first"


def arguments_unchanged(step: Step, case: GoldenCase) -> None:
    """Planning changes neither the objects nor the `Observed` that was read from them."""
    objects = case.objects
    untouched = copy.deepcopy(objects)
    for subject in subjects(step, case.capture, Snapshot(objects)):
        if not isinstance(subject, NoOp):
            inputs = step.inputs(Snapshot(objects), subject)
            before = repr(inputs)
            step.plan(inputs, case.now)
            assert repr(inputs) == before, "planning changed its inputs"
    assert objects == untouched, "the objects themselves were changed"


def gone_is_nothing(step: Step, case: GoldenCase) -> None:
    """An event about an object that no longer exists plans no writes."""
    event = parse(case.capture.headers, case.capture.body)
    if not isinstance(event, ResourceEvent):
        return
    about = (event.ref.kind, event.ref.namespace, event.ref.name)
    left = [obj for obj in case.objects if _named(obj) != about]
    for decision in decisions(step, case.capture, Snapshot(left), case.now):
        assert not _writes(decision), f"{event.ref} is gone, and still there is a plan: {decision.reason}"


def another_uid_is_nothing(step: Step, case: GoldenCase) -> None:
    """An event with another UID, of an earlier object of the same name, plans no writes."""
    event = copy.deepcopy(recorded.envelope(case.capture))
    if not event["type"].startswith("dev.knative.apiserver.resource."):
        return
    event["data"]["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
    for decision in decisions(step, _structured(event), Snapshot(case.objects), case.now):
        assert not _writes(decision), f"an event of another UID made a plan: {decision.reason}"


def executed_twice_is_nothing(step: Step, case: GoldenCase) -> None:
    """After a plan was executed, the same event plans no writes."""
    with cluster_of(case.objects, step) as cluster:
        carry_out(step, case.capture, cluster, case.now)
        for decision in decisions(step, case.capture, cluster, case.now):
            assert not _writes(decision), f"planned again: {decision.reason}"


def older_after_newer_changes_nothing(step: Step, case: GoldenCase) -> None:
    """After the newest event, older events about the same object plan no writes.

    The newest event is also delivered in mode Reference, because a step may skip an event in mode Resource by
    its data, without reading the cluster.
    """
    with cluster_of(case.objects, step) as cluster:
        for newest in (case.capture, *reference_to(case.capture)):
            carry_out(step, newest, cluster, case.now)
        for older in older_than(case.capture):
            for decision in decisions(step, older, cluster, case.now):
                assert not _writes(decision), f"an older event made a plan: {decision.reason}"


LAWS: tuple[Callable[[Step, GoldenCase], None], ...] = (
    same_input_same_plan,
    arguments_unchanged,
    gone_is_nothing,
    another_uid_is_nothing,
    executed_twice_is_nothing,
    older_after_newer_changes_nothing,
)


def subjects(step: Step, capture: RecordedRequest, cluster: Cluster) -> list[Any]:
    """Return the subjects of a step for an event, each an ObjectRef or typed inputs, or its NoOp."""
    event = parse(capture.headers, capture.body)
    if isinstance(event, Sweep):
        return list(step.responsible_for(cluster))
    assert isinstance(event, ResourceEvent)
    return [step.predicate(event)]


def decisions(step: Step, capture: RecordedRequest, cluster: Cluster, now: datetime) -> list[Decision]:
    """Return the decisions of a step for an event, one for each subject."""
    return [
        subject if isinstance(subject, NoOp) else step.plan(step.inputs(cluster, subject), now)
        for subject in subjects(step, capture, cluster)
    ]


def carry_out(step: Step, capture: RecordedRequest, cluster: Cluster, now: datetime) -> None:
    """Execute the plans of a step for an event; repeat while a decision asks for a retry."""
    for _ in range(AGAIN):
        decided = decisions(step, capture, cluster, now)
        for decision in decided:
            if isinstance(decision, Plan):
                step.execute(cluster, decision, step.manager)
        if not any(decision.requeue for decision in decided):
            return


@contextmanager
def cluster_of(objects: Objects, step: Step) -> Iterator[Cluster]:
    """Run an embedded API server with these objects; yield its client."""
    with ApiServer() as server:
        server.load(_definitions())
        server.load(objects)
        yield Versioned(Direct.to(server, user_agent=step.manager))


def older_than(capture: RecordedRequest) -> Iterator[RecordedRequest]:
    """Yield the recorded events about the same object up to this one, each in both modes."""
    event = recorded.envelope(capture)
    if not event["type"].startswith("dev.knative.apiserver."):
        return
    for other in recorded.events_about(event):
        if _version(recorded.envelope(other)) <= _version(event):
            yield other
            yield from reference_to(other)


def reference_to(capture: RecordedRequest) -> Iterator[RecordedRequest]:
    """Yield the event in mode Reference, if it is in mode Resource."""
    event = recorded.envelope(capture)
    if event["type"].startswith("dev.knative.apiserver.resource."):
        metadata = event["data"]["metadata"]
        named = {key: metadata[key] for key in ("namespace", "name") if key in metadata}
        data = {key: event["data"][key] for key in ("apiVersion", "kind")} | named
        yield _structured({**event, "type": event["type"].replace(".resource.", ".ref."), "data": data})


def _structured(event: Mapping[str, Any]) -> RecordedRequest:
    return RecordedRequest({"content-type": STRUCTURED}, json.dumps(event).encode(), "older")


def _version(event: Mapping[str, Any]) -> int:
    """Return the resourceVersion in an event; for a reference, which has none, the highest possible."""
    return int(event["data"].get("metadata", {}).get("resourceVersion", 1 << 62))


def _named(obj: Object) -> tuple[str, str, str]:
    metadata = obj["metadata"]
    return obj["kind"], metadata.get("namespace", ""), metadata["name"]


def _writes(decision: Decision) -> bool:
    return isinstance(decision, Plan) and bool(decision.actions)


@cache
def _definitions() -> list[Object]:
    return resource_definitions()
