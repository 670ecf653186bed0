"""The step that a team copies tells of a gang that waits, once. Replayed on the local broker."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from flask.testing import FlaskClient

from eventing.examples.own_step.step import create_app
from functions.emit_conditions.function.step import STEP
from muster.files import EVENTING
from muster.kustomize import load, of_kind
from muster.runtime.config import Settings, connect
from muster.runtime.handle import Handler
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.broker import Answer, Broker, CloudEvent, Target, Wiring
from tests.conftest import Wording
from tests.manifests.knative_models import TriggerSpec
from tests.replays import recorded

EXAMPLE = load(EVENTING / "examples" / "own_step")
BEGAN = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
"""When emit_conditions wrote that the gang waits."""


@dataclass
class ChatChannel:
    """A channel: what was said in it, and how it answers."""

    status: int = 200
    said: list[str] = field(default_factory=list)


@pytest.fixture(name="chat")
def _chat() -> Iterator[tuple[ChatChannel, str]]:
    chat = ChatChannel()

    class Webhook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            chat.said.append(json.loads(self.rfile.read(length))["text"])
            self.send_response(chat.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Webhook)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield chat, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(name="cluster")
def _cluster() -> Iterator[Any]:
    """The recorded Job that does not fit, of which emit_conditions has told."""
    with ApiServer() as server:
        server.load(resource_definitions())
        server.load(recorded.world_at("5-does-not-fit", "unschedulable").objects)
        cluster = connect(Settings(api_server=server.url))
        handler = Handler(STEP, cluster, Settings(), lambda: BEGAN)
        sweep = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/t", "ce-type": "dev.muster.sweep"}
        assert handler.handle(sweep, b"").status == 202
        yield cluster


def a_minute(after: timedelta) -> CloudEvent:
    """What the PingSource sends."""
    return CloudEvent(
        {
            "specversion": "1.0",
            "id": str(after),
            "source": "/apis/v1/namespaces/muster-system/pingsources/sweep",
            "type": "dev.knative.sources.ping",
            "time": (BEGAN + after).isoformat(),
        }
    )


def through_broker(client: FlaskClient, *minutes: timedelta) -> list[CloudEvent]:
    """Events through the trigger of the example; what ended as a dead letter."""
    dead: list[CloudEvent] = []

    def deliver(headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:  # noqa: ARG001
        answer = client.post("/", headers=dict(headers), data=body)
        return Answer(answer.status_code, dict(answer.headers), answer.data)

    def bury(headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:  # noqa: ARG001
        dead.append(CloudEvent.from_http(headers, body))
        return Answer(202)

    brokers = of_kind(load(), "Broker")
    targets: dict[str, Target | str] = {"tell-chat": deliver, "dead-letter": bury}
    broker = Broker(Wiring.from_manifests([*brokers, *EXAMPLE]), targets, workers=0, clock=lambda: "")
    for minute in minutes:
        broker.publish(a_minute(minute))
        broker.pump()
    return dead


def minutes(*numbers: float) -> list[timedelta]:
    """So long after the gang began to wait."""
    return [timedelta(minutes=number) for number in numbers]


def test_a_gang_that_waits_is_told_of_once(
    chat: tuple[ChatChannel, str], cluster: Any, wording: Wording
) -> None:
    """Every minute for ten minutes: one line, with the owner, since when, and the scheduler's words."""
    channel, url = chat
    dead = through_broker(create_app(cluster, url).test_client(), *minutes(*range(10)))
    (line,) = channel.said
    assert [fact for fact in ("Job", "team-e/big", "09:00:00", "Unschedulable") if fact not in line] == []
    wording(line)
    assert dead == []


@pytest.mark.parametrize(
    "after", [pytest.param(4.9, id="not yet five minutes"), pytest.param(6, id="told a minute ago")]
)
def test_it_is_told_at_no_other_time(chat: tuple[ChatChannel, str], cluster: Any, after: float) -> None:
    """A minute is what lies between two events of the timer."""
    channel, url = chat
    through_broker(create_app(cluster, url).test_client(), *minutes(after))
    assert channel.said == []


def test_a_chat_that_is_down_is_tried_again(chat: tuple[ChatChannel, str], cluster: Any) -> None:
    """The broker's own delivery counts: five retries, then the dead letter."""
    channel, url = chat
    channel.status = 500
    dead = through_broker(create_app(cluster, url).test_client(), *minutes(5))
    assert len(channel.said) == 6
    assert len(dead) == 1


def test_manifests_fit_together() -> None:
    """The trigger's service is there, and runs as the account that the role is bound to; it may only list."""
    (trigger,), (service,) = of_kind(EXAMPLE, "Trigger"), of_kind(EXAMPLE, "Service")
    spec = TriggerSpec.model_validate(trigger["spec"])
    assert spec.subscriber.ref is not None
    assert spec.subscriber.ref.name == service["metadata"]["name"]
    (account,) = of_kind(EXAMPLE, "ServiceAccount")
    assert service["spec"]["template"]["spec"]["serviceAccountName"] == account["metadata"]["name"]
    (role,) = of_kind(EXAMPLE, "ClusterRole")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list"}
