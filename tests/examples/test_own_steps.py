"""The steps that teams copy, beside Muster's own: on the local stack, in replays, and against their scaffold.

Their own tests are in their folders; `make test` runs them as well.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from muster.data import EVENTING
from muster.local.functions import WsgiServer
from muster.local.stories.story import story_named
from muster.replay.replay import ReplayResult, replay
from muster.scaffold import REACTIONS, write_step
from muster.simulator.overlays import load, of_kind
from muster.testing import RunningStack, shipped
from tests.manifests.knative_fields import unknown_fields

EXAMPLES = EVENTING / "examples"
STEPS = {"label_racks": "podgroup-bound", "tell_chat": "podgroup-waiting"}
"""The steps, and what `muster new-step` made them react to."""
BY_HAND = 60
"""The most lines that are left to write by hand, in code and manifests together."""

each_step = pytest.mark.parametrize("name", STEPS)


def test_every_example_with_a_step_is_tested_here() -> None:
    """Folders with a step.py."""
    assert set(STEPS) == {path.parents[1].name for path in EXAMPLES.glob("*/function/step.py")}


@each_step
def test_few_lines_are_written_by_hand(name: str, tmp_path: Path) -> None:
    """Everything else is as `muster new-step` writes it; tests are not counted."""
    written = write_step(tmp_path / name, REACTIONS[STEPS[name]])
    lines = {
        str(path): _added(tmp_path / name / path, EXAMPLES / name / path)
        for path in written
        if path.parts[0] != "tests"
    }
    assert 0 < sum(lines.values()) <= BY_HAND, lines


def _added(before: Path, after: Path) -> int:
    """Return how many lines of a file are new, blank ones not counted."""
    difference = difflib.ndiff(before.read_text().splitlines(), after.read_text().splitlines())
    return sum(line.startswith("+ ") and bool(line[2:].strip()) for line in difference)


@each_step
def test_a_trigger_of_an_example_is_valid_for_knative(name: str) -> None:
    """It has the fields of Knative's schema, and leads to the step's Service."""
    (trigger,) = of_kind(load(EXAMPLES / name), "Trigger")
    assert unknown_fields(trigger) == []
    assert trigger["spec"]["subscriber"]["ref"]["name"] == name.replace("_", "-")


def test_racks_are_labelled_as_soon_as_the_gang_is_bound() -> None:
    """By the event of the PodGroup alone: the first sweep would come a minute later."""
    with RunningStack(EXAMPLES / "label_racks") as stack:
        stack.create_namespace("team-a")
        (job,) = story_named("indexed-job").manifest
        stack.create(job, "team-a")
        stack.until("the PodGroup has labels of racks", lambda: _racks(stack))
        stack.settle()
        assert sum(map(int, _racks(stack).values())) == 4
        assert stack.broken_laws() == [] == stack.dead_letters()


def _racks(stack: RunningStack) -> dict[str, str]:
    prefix = "racks.example.com/"
    labels = (group["metadata"].get("labels") or {} for group in stack.all("PodGroup"))
    return {name: value for found in labels for name, value in found.items() if name.startswith(prefix)}


@contextmanager
def webhook(monkeypatch: pytest.MonkeyPatch, status: str) -> Iterator[list[str]]:
    """Serve a chat's webhook that answers with this status; yield the texts that it gets."""
    texts: list[str] = []

    def channel(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        texts.append(json.loads(environ["wsgi.input"].read())["text"])
        start_response(status, [])
        return [b""]

    server = WsgiServer(channel, "webhook")
    monkeypatch.setenv("WEBHOOK_URL", server.url)
    yield texts
    server.stop()


def test_a_sweep_sends_the_message_after_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all recorded events and two sweeps, one minute apart, the chat gets one text."""
    with webhook(monkeypatch, "200 OK") as texts:
        early, late = (_reasons(_replayed(minutes)) for minutes in (3, 6))
    assert (early & _CHAT, late & _CHAT) == ({"NotYet"}, {"ChatTold", "ToldBefore"})
    assert len(texts) == 1


def test_a_chat_that_is_down_makes_a_dead_letter_after_five_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trigger's delivery counts: one attempt and five retries, then the dead letter sink."""
    with webhook(monkeypatch, "500 Internal Server Error") as texts:
        end = _replayed(6, sweep=False)
    assert (len(texts), len(end.dead_letters)) == (6, 1)


_CHAT = {"NotYet", "ChatTold", "ToldBefore"}


def _replayed(minutes: int, *, sweep: bool = True) -> ReplayResult:
    """Replay the waiting gang so many minutes after the scheduler refused it."""
    recording = shipped("does-not-fit")
    waiting = recording.at("unschedulable")
    refused = recording.case("PodGroup update", moment="unschedulable").now
    events, now = [recording.event("PodGroup update")], refused + timedelta(minutes=minutes)
    return replay(events, waiting, now, sweep=sweep, overlay=EXAMPLES / "tell_chat")


def _reasons(end: ReplayResult) -> set[str]:
    return {activity.reason for activity in end.activities if activity.step == "tell_chat"}
