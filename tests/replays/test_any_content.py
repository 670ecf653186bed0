"""Any JSON at any field of an event: the answer is a success or 400, never 500, which brokers retry."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.cluster.interface import Object
from muster.cluster.observe.snapshot import Snapshot
from muster.events.parse import STRUCTURED, ResourceEvent, parse
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime import steps
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.step import Step
from muster.testing.cases import envelope
from tests.replays import recorded
from tests.replays.test_forged_events import NOW

STORIES = (*recorded.STORIES, "7-runtime-annotated")
CHANGES = ("add", "update", "delete")
EXAMPLES = 75
"""Events for each function; together they take a few seconds."""

Path = tuple[str | int, ...]


def status_of(step: Step, event: Object) -> int:
    """Return the HTTP status of a function's answer to an event, in a cluster without objects.

    There only the content of the event can cause an error.
    """
    handler = Handler(step, Snapshot(()), Settings(deadline_seconds=60), lambda: NOW)
    return handler.handle({"content-type": STRUCTURED}, json.dumps(event).encode()).status


@cache
def events_of(step: Step) -> list[Object]:
    """Return recorded events of each kind that a step accepts, with the changes that it accepts."""
    chosen: dict[tuple[str, str], Object] = {}
    for story in STORIES:
        for capture in recorded.events(story):
            event = envelope(capture)
            for change in CHANGES:
                chosen[event["kind"], change] = {**event, "type": f"dev.knative.apiserver.resource.{change}"}
    return [event for event in chosen.values() if _accepted(step, event)]


def _accepted(step: Step, event: Object) -> bool:
    parsed = parse({"content-type": STRUCTURED}, json.dumps(event).encode())
    assert isinstance(parsed, ResourceEvent)
    decision = step.predicate(parsed)
    return not (isinstance(decision, NoOp) and decision.reason == Reason.NOT_FOR_THIS_STEP)


def nested(depth: int) -> Any:
    """Return a list in a list, this many levels deep."""
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


TEXTS = st.sampled_from(
    ["", "many", "3", "true", "\ud800", "2026-11-21T08:00:00Z", "{", "workload: {}"]
) | st.text(max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    SCALARS | st.sampled_from([nested(50), nested(400), 1 << 70]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXTS | st.sampled_from(["type", "name", "status"]), inner, max_size=3)
    ),
    max_leaves=5,
)


def with_value(event: Object, path: Path, value: Any) -> Object:
    """Return the event with another value at a path of its data."""
    changed = copy.deepcopy(event)
    at = changed["data"]
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    return changed


@st.composite
def changed_event(draw: st.DrawFn, events: list[Object]) -> Object:
    """Draw a recorded event with any JSON in place of up to three of its values."""
    event = draw(st.sampled_from(events))
    for _ in range(draw(st.integers(1, 3))):
        at: Any = event["data"]
        path: Path = ()
        while isinstance(at, dict | list) and at and (not path or draw(st.booleans())):
            key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
            at, path = at[key], (*path, key)
        event = with_value(event, path, draw(ANYTHING))
    return event


@pytest.mark.parametrize("name", [name for name in steps.step_names() if events_of(steps.step_named(name))])
def test_no_content_of_an_event_is_an_error_of_the_function(name: str) -> None:
    """Senders decide what is in events; a 500 would be retried and look like a bug."""
    step = steps.step_named(name)

    @settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
    @given(changed_event(events_of(step)))
    def hold(event: Object) -> None:
        status = status_of(step, event)
        assert status < 300 or status == 400

    hold()


def test_a_wrong_type_is_an_unreadable_event() -> None:
    """The answer is 400, which goes to the dead letter sink at once."""
    step = steps.step_named("resize_gang")
    event = next(event for event in events_of(step) if event["kind"] == "Job" and "update" in event["type"])
    assert status_of(step, with_value(event, ("spec", "parallelism"), "many")) == 400
