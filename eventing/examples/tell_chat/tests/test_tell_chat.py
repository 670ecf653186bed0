"""The step on a recorded event; `pytest --muster-update` writes case/plan.yaml anew."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from muster import PodGroup
from muster.testing import (
    Case,
    CompareGolden,
    EmbeddedCluster,
    check_laws,
    check_manifests,
    load_step,
    plan_of,
)

FOLDER = Path(__file__).parents[1]
STEP = load_step(FOLDER)
RECORDED = Case.read(FOLDER / "tests" / "case")
"""The PodGroup update of the recording `does-not-fit`, at `unschedulable`."""
CASE = replace(RECORDED, now=RECORDED.now + timedelta(minutes=6))


class Webhook(BaseHTTPRequestHandler):
    """A chat that keeps the messages it gets, and answers with its status."""

    told: list[str]
    status = 200

    def do_POST(self) -> None:
        """Keep the text."""
        self.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture(name="chat", autouse=True)
def _chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Webhook]]:
    """The chat whose webhook the step finds in its environment."""
    chat = type("Chat", (Webhook,), {"told": []})
    with HTTPServer(("127.0.0.1", 0), chat) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("WEBHOOK_URL", f"http://127.0.0.1:{server.server_port}")
        yield chat
        server.shutdown()
        thread.join()


def test_the_plan_is_the_one_that_was_reviewed(muster_golden: CompareGolden) -> None:
    """It is in case/plan.yaml."""
    plan = plan_of(STEP, CASE)
    assert plan.reason == "ChatTold"
    muster_golden(plan, "case/plan.yaml")


def test_old_repeated_and_forged_events_change_nothing() -> None:
    """The laws of every step."""
    check_laws(STEP, CASE)


@pytest.mark.parametrize(("minutes", "reason"), [(4.9, "NotYet"), (5, "ChatTold"), (600, "ChatTold")])
def test_it_has_patience(minutes: float, reason: str) -> None:
    """A gang that waits for five minutes is reported, however late the step runs."""
    (group,) = (PodGroup.read(body) for body in CASE.objects if body["kind"] == "PodGroup")
    assert group.refused_at
    later = replace(CASE, now=group.refused_at + timedelta(minutes=minutes))
    assert plan_of(STEP, later).reason == reason


def test_one_message_is_sent_to_the_chat(muster_cluster: EmbeddedCluster, chat: type[Webhook]) -> None:
    """The text names the PodGroup, and says since when and why; the annotation remembers it."""
    muster_cluster.load(*CASE.objects)
    answers = [muster_cluster.deliver(STEP, CASE.event, CASE.now) for _ in range(3)]
    assert [answer.reason for answer in answers] == ["ChatTold", "ToldBefore", "ToldBefore"]
    (text,) = chat.told
    assert "PodGroup team-e/big-main-" in text
    assert "Unschedulable" in text


def test_a_chat_that_is_down_is_tried_again(muster_cluster: EmbeddedCluster, chat: type[Webhook]) -> None:
    """The event is delivered again, and nothing is noted until the chat took it."""
    muster_cluster.load(*CASE.objects)
    chat.status = 500
    assert muster_cluster.deliver(STEP, CASE.event, CASE.now).status == 503
    chat.status = 200
    assert muster_cluster.deliver(STEP, CASE.event, CASE.now).reason == "ChatTold"


def test_the_manifests_fit_the_code() -> None:
    """Its Service, its Trigger, and a role with exactly its permissions."""
    check_manifests(FOLDER)
