"""The laws of every step for every event; each raises AssertionError if it is broken.

Events may be delivered twice, out of order and late (Knative eventing specification, data-plane.md), and a
plan is a pure function of the observed objects. The laws follow from these two facts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime

from muster.cluster.interface import Cluster
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.versioned import Versioned
from muster.events.parse import ResourceEvent, Sweep, parse
from muster.policy.model import Decision, NoOp, Plan
from muster.replay.files import RecordedRequest
from muster.replay.plans import decisions, subjects
from muster.replay.snapshots import Object, Objects, name_of
from muster.runtime.step import Step
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.direct import Direct
from muster.testing.cases import Case, envelope, structured

__tracebackhide__ = True  # pytest shows the test and the message, not the check's source
AGAIN = 3
"""Maximum runs of a step whose decision asks for a retry, for example while an object is being deleted."""

Law = Callable[[Step, Case], None]


def event_is_for_the_step(step: Step, case: Case) -> None:
    """The predicate accepts the event; else every other law holds, whatever the step does."""
    event = parse(case.event.headers, case.event.body)
    ignored = None if isinstance(event, Sweep) else step.subject_of(event)
    assert not isinstance(ignored, NoOp), f"the predicate ignores it: {ignored.reason} {ignored.message}"


def same_input_same_plan(step: Step, case: Case) -> None:
    """Two runs on the same event and the same objects return equal decisions."""
    first = decisions(step, case.event, case.cluster(), case.now)
    second = decisions(step, case.event, case.cluster(), case.now)
    assert first == second, "the second plan differs from the first"


def arguments_unchanged(step: Step, case: Case) -> None:
    """Planning changes neither the objects nor the inputs that were read from them."""
    objects = case.copied_objects()
    event = parse(case.event.headers, case.event.body)
    for subject in subjects(step, event, Snapshot(objects)):
        if not isinstance(subject, NoOp):
            inputs = step.observe(Snapshot(objects), subject)
            before = repr(inputs)
            step.plan(inputs, case.now)
            assert repr(inputs) == before, "planning changed its inputs"
    assert objects == case.objects, "the objects themselves were changed"


def gone_is_nothing(step: Step, case: Case) -> None:
    """An event about an object that no longer exists plans no writes."""
    event = parse(case.event.headers, case.event.body)
    if not isinstance(event, ResourceEvent):
        return
    about = (event.ref.kind, event.ref.namespace, event.ref.name)
    left = [obj for obj in case.copied_objects() if name_of(obj) != about]
    for decision in decisions(step, case.event, Snapshot(left), case.now):
        assert not _writes(decision), f"{event.ref} is gone, and still there is a plan: {decision.reason}"


def another_uid_is_nothing(step: Step, case: Case) -> None:
    """An event with another UID, of an earlier object of the same name, plans no writes."""
    event = copy.deepcopy(envelope(case.event))
    if not event["type"].startswith("dev.knative.apiserver.resource."):
        return
    event["data"]["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"
    for decision in decisions(step, structured(event), case.cluster(), case.now):
        assert not _writes(decision), f"an event of another UID made a plan: {decision.reason}"


def executed_twice_is_nothing(step: Step, case: Case) -> None:
    """After a plan was executed, the same event plans no writes."""
    with cluster_of(case.copied_objects(), step) as cluster:
        carry_out(step, case.event, cluster, case.now)
        for decision in decisions(step, case.event, cluster, case.now):
            assert not _writes(decision), f"planned again: {decision.reason}"


def older_after_newer_changes_nothing(step: Step, case: Case) -> None:
    """After the newest event, older events about the same object plan no writes.

    The newest event is also delivered in mode Reference, because a step may skip an event in mode Resource by
    its data, without reading the cluster.
    """
    with cluster_of(case.copied_objects(), step) as cluster:
        for newest in (case.event, *reference_to(case.event)):
            carry_out(step, newest, cluster, case.now)
        for older in older_than(case):
            for decision in decisions(step, older, cluster, case.now):
                assert not _writes(decision), f"an older event made a plan: {decision.reason}"


LAWS: tuple[Law, ...] = (
    event_is_for_the_step,
    same_input_same_plan,
    arguments_unchanged,
    gone_is_nothing,
    another_uid_is_nothing,
    executed_twice_is_nothing,
    older_after_newer_changes_nothing,
)


def check_laws(step: Step, case: Case, *, without: Collection[str] = ()) -> None:
    """Check every law for a step and a case; plans are executed on embedded API servers.

    CustomResourceDefinitions among the objects are served. `without` names laws that the step breaks on
    purpose, such as `gone_is_nothing` for a step that writes when its object was deleted.

    Raises:
        AssertionError: a law is broken; the message says which, and how.
        LookupError: there is no law of a name in `without`, or the kind of an object is not served.
    """
    if unknown := set(without) - {law.__name__ for law in LAWS}:
        raise LookupError(f"no laws of these names: {', '.join(sorted(unknown))}")
    for law in LAWS:
        if law.__name__ not in without:
            try:
                law(step, case)
            except AssertionError as error:
                # Only the first line: pytest appends the values of the law's expression.
                broken, *_ = str(error).splitlines()
                raise AssertionError(f"{step.name} breaks the law {law.__name__}: {broken}") from None


def carry_out(step: Step, request: RecordedRequest, cluster: Cluster, now: datetime) -> None:
    """Execute the plans of a step for an event; repeat while a decision asks for a retry."""
    for _ in range(AGAIN):
        decided = decisions(step, request, cluster, now)
        for decision in decided:
            if isinstance(decision, Plan):
                step.execute(cluster, decision, step.manager)
        if not any(decision.requeue for decision in decided):
            return


@contextmanager
def cluster_of(objects: Objects, step: Step) -> Iterator[Cluster]:
    """Run an embedded API server with these objects; yield its client."""
    with ApiServer() as server:
        server.load(resource_definitions())
        server.load(objects)
        yield Versioned(Direct.to(server, user_agent=step.manager))


def older_than(case: Case) -> Iterator[RecordedRequest]:
    """Yield the older events of a case up to its own, each in both modes."""
    newest = envelope(case.event)
    if not newest["type"].startswith("dev.knative.apiserver."):
        return
    for other in case.older:
        if _version(envelope(other)) <= _version(newest):
            yield other
            yield from reference_to(other)


def reference_to(request: RecordedRequest) -> Iterator[RecordedRequest]:
    """Yield the event in mode Reference, if it is in mode Resource."""
    event = envelope(request)
    if event["type"].startswith("dev.knative.apiserver.resource."):
        metadata = event["data"]["metadata"]
        named = {key: metadata[key] for key in ("namespace", "name") if key in metadata}
        data = {key: event["data"][key] for key in ("apiVersion", "kind")} | named
        yield structured({**event, "type": event["type"].replace(".resource.", ".ref."), "data": data})


def _version(event: Object) -> int:
    """Return the resourceVersion in an event; for a reference, which has none, the highest possible."""
    return int(event["data"].get("metadata", {}).get("resourceVersion", 1 << 62))


def _writes(decision: Decision) -> bool:
    return isinstance(decision, Plan) and bool(decision.actions)
