"""The steps that teams copy, beside Muster's own: on the local stack, in replays, and against their scaffold.

Their own tests are in their folders; `make test` runs them as well.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from muster.cli.new_step import REACTIONS, write_step
from muster.data import EVENTING
from muster.local.stack import WsgiServer
from muster.local.stories.story import STORIES
from muster.replay.replay import replay
from muster.testing import RunningStack, shipped

EXAMPLES = EVENTING / "examples"
STEPS = {"label_racks": "podgroup-bound", "tell_chat": "podgroup-waiting"}
"""The steps, and what `muster new-step` made them react to."""
BY_HAND = 60
"""The most lines that are left to write by hand, in code and manifests together."""


def test_every_example_with_a_step_is_tested_here() -> None:
    """Folders with a step.py."""
    assert set(STEPS) == {path.parents[1].name for path in EXAMPLES.glob("*/function/step.py")}


@pytest.mark.parametrize("name", STEPS)
def test_few_lines_are_written_by_hand(name: str, tmp_path: Path) -> None:
    """Everything else is as `muster new-step` writes it; tests and blank lines are not counted."""
    added: list[str] = []
    for path in write_step(tmp_path / name, REACTIONS[STEPS[name]]):
        if path.parts[0] != "tests":
            before, after = ((folder / name / path).read_text() for folder in (tmp_path, EXAMPLES))
            difference = difflib.ndiff(before.splitlines(), after.splitlines())
            added += [line for line in difference if line.startswith("+ ") and line[2:].strip()]
    assert 0 < len(added) <= BY_HAND, added


def test_racks_are_labelled_as_soon_as_the_gang_is_bound() -> None:
    """By the event of the PodGroup alone: the first sweep would come a minute later."""
    with RunningStack(EXAMPLES / "label_racks") as stack:
        stack.create_namespace("team-a")
        (job,) = STORIES["indexed-job"].manifest
        stack.create(job, "team-a")
        stack.until("the PodGroup has labels of racks", lambda: _racks(stack))
        stack.settle()
        assert sum(map(int, _racks(stack).values())) == 4
        assert stack.broken_laws() == [] == stack.dead_letters()


def _racks(stack: RunningStack) -> dict[str, str]:
    prefix = "racks.example.com/"
    labels = (group["metadata"].get("labels") or {} for group in stack.all("PodGroup"))
    return {name: value for found in labels for name, value in found.items() if name.startswith(prefix)}


def test_a_sweep_sends_the_message_after_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all recorded events and two sweeps, the chat gets one text, while the gang waits for long."""
    texts: list[str] = []

    def channel(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        texts.append(json.loads(environ["wsgi.input"].read())["text"])
        start_response("200 OK", [])
        return [b""]

    server = WsgiServer(channel, "webhook")
    monkeypatch.setenv("WEBHOOK_URL", server.url)
    early, late = (_reasons_after(minutes) for minutes in (3, 6))
    server.stop()
    assert (early, late, len(texts)) == ({"NotYet"}, {"ChatTold", "ToldBefore"}, 1)


def _reasons_after(minutes: int) -> set[str]:
    """Replay the waiting gang so many minutes after the scheduler refused it; what tell_chat says of it."""
    recording = shipped("does-not-fit")
    now = recording.case("PodGroup update", moment="unschedulable").now + timedelta(minutes=minutes)
    events, waiting = [recording.event("PodGroup update")], recording.at("unschedulable")
    end = replay(events, waiting, now, sweep=True, overlay=EXAMPLES / "tell_chat")
    told = {activity.reason for activity in end.activities if activity.step == "tell_chat"}
    return told & {"NotYet", "ChatTold", "ToldBefore"}
