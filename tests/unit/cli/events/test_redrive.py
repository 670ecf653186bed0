"""`muster redrive` sends dead letters to the broker again, and deletes those that were accepted."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from muster.cli import redrive as redrive_command
from muster.cluster.errors import Unavailable
from muster.cluster.http.client import Client
from muster.events.dead_letters import SELECTOR, cut, of_request, to_config_map
from muster.kustomize import load
from muster.objects.resources import CONFIGMAPS, NAMESPACES
from muster.objects.text import printable
from muster.operator.redrive import BROKERS, list_letters
from muster.operator.redrive import redrive as send_again
from muster.runtime.config import Settings
from muster.runtime.dead_letter import LETTER_BYTES, DeadLetters
from muster.simulator.apiserver import ApiServer
from muster.simulator.broker import Answer, Broker, CloudEvent, Ingress, Wiring
from tests.unit.cli.check.test_check import DEFINITIONS
from tests.unit.cli.conftest import Muster, assert_names, noting
from tests.unit.cluster.scripted import ScriptedResponse, serving
from tests.unit.events.test_dead_letters import EVENT, FAILURE, structured
from tests.unit.runtime.fakes import NOW

HOME = "muster-system"
KNATIVE = "http://broker-ingress.knative-eventing.svc.cluster.local"
JOB_ADDED = EVENT | {"apiversion": "batch/v1"}


@dataclass
class RedriveCluster:
    """An embedded API server with a broker of eventing/, whose functions take what `refuses` leaves them."""

    client: Client
    kubeconfig: str
    refuses: bool = False
    heard: list[CloudEvent] = field(default_factory=list)
    broker: Any = None
    url: str = ""
    load: Callable[[list[Any]], object] = list

    def function(self, headers: Any, body: bytes, _timeout: float | None) -> Answer:
        """Any of the functions."""
        self.heard.append(CloudEvent.from_http(headers, body))
        return Answer(400) if self.refuses else Answer(202)

    def letters(self) -> list[str]:
        """The names of the dead letters."""
        return [obj["metadata"]["name"] for obj in self.client.list(CONFIGMAPS, HOME, labels=SELECTOR)]

    def store(self, **change: Any) -> str:
        """Store a dead letter; its name."""
        letter = cut(of_request(*structured(JOB_ADDED | FAILURE | change)), LETTER_BYTES)
        self.client.create(CONFIGMAPS, to_config_map(letter, HOME), manager="test")
        return letter.name


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RedriveCluster]:
    """The local broker with all triggers, behind HTTP."""
    wiring = Wiring.from_manifests(load()).without_timers()
    with ApiServer() as server:
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        made = RedriveCluster(Client.for_server(server.url), str(tmp_path / "kubeconfig"))
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
        made.client.create(NAMESPACES, namespace, manager="test")
        keeper = DeadLetters(made.client, Settings(dead_letter_namespace=HOME), lambda: NOW)

        def buries(headers: Any, body: bytes, _timeout: float | None) -> Answer:
            return Answer(keeper.handle(headers, body).status)

        services = {trigger.subscriber: made.function for trigger in wiring.triggers}
        made.broker = Broker(wiring, {**services, "dead-letter": buries}, workers=0)
        ingress = Ingress(made.broker)
        ingress.start()
        made.url, made.load = ingress.url, server.load
        yield made
        ingress.stop()


def put_broker(world: RedriveCluster, address: str) -> None:
    """Store the cluster's broker with this address."""
    broker = {
        "apiVersion": BROKERS.api_version,
        "kind": "Broker",
        "metadata": {"name": "muster", "namespace": HOME},
        "spec": {},
        "status": {"address": {"url": address}},
    }
    world.load([*(each for each in DEFINITIONS if each["spec"]["names"]["kind"] == "Broker"), broker])


def redrive(muster: Muster, world: RedriveCluster, *arguments: str) -> Result:
    """Call `muster redrive` on that world."""
    return muster("redrive", "--kubeconfig", world.kubeconfig, *arguments)


def test_a_row_is_short_whatever_a_sender_wrote(muster: Muster, world: RedriveCluster) -> None:
    """The longest cell makes all rows as wide."""
    world.store(id="2", kind="", subject="x" * 9_000, type="y" * 9_000)
    letter = world.client.get(CONFIGMAPS, world.store(), HOME)
    assert letter is not None
    letter["data"]["function"] = "z" * 9_000
    world.client.replace(CONFIGMAPS, letter, manager="test")
    result = redrive(muster, world)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) < 2_000


def test_the_list_names_the_function_and_its_answer(muster: Muster, world: RedriveCluster) -> None:
    """One row for each, and nothing is sent."""
    name = world.store()
    unanswered = world.store(id="2", knativeerrordest="", knativeerrorcode="", knativeerrordata="")
    result = redrive(muster, world)
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines()]
    assert rows[0] == ["NAME", "SINCE", "FUNCTION", "ANSWER", "EVENT", "ABOUT"]
    (row,) = (row for row in rows if row[0] == name)
    assert row[2:] == [
        "create-workload", "500", '{"reason":', '"Invalid"}', "dev.knative.apiserver.resource.add", "Job",
        "team-a/llama",
    ]  # fmt: skip
    (line,) = (line for line in result.stdout.splitlines() if line.startswith(unanswered))
    assert "500" not in line
    _, _, function, *_ = re.split(r" {2,}", line)
    assert function == "-"
    data = json.loads(redrive(muster, world, "-o", "json").stdout)
    assert {(entry["name"], entry["function"]) for entry in data} == {
        (name, "create-workload"),
        (unanswered, "-"),
    }
    assert world.heard == []


def test_nothing_to_list(muster: Muster, world: RedriveCluster) -> None:
    """Silence would leave open whether it had looked."""
    listed, sent = redrive(muster, world), redrive(muster, world, "--all")
    assert (listed.exit_code, sent.exit_code) == (0, 0)
    assert listed.stdout == sent.stdout
    assert len(listed.stdout.splitlines()) == 1


def test_all_are_sent_and_forgotten(muster: Muster, world: RedriveCluster) -> None:
    """Each function whose trigger lets it through hears it again, as it was but for its turn."""
    names = {world.store(), world.store(id="2")}
    sent = redrive(muster, world, "--all", "--to", world.url)
    assert sent.exit_code == 0
    assert {line.partition(":")[0] for line in sent.stdout.splitlines()} == names
    assert world.letters() == []
    world.broker.pump()
    assert {event["id"] for event in world.heard} == {"421c", "2"}
    for event in world.heard:
        structured = event.structured()
        assert structured.pop("musterredrive") == "1"
        assert structured.pop("knativearrivaltime")
        assert structured == JOB_ADDED | {"id": event["id"]}


def test_a_letter_that_fails_again_is_stored_again(muster: Muster, world: RedriveCluster) -> None:
    """Under another name, so that it is not taken for the one that was forgotten."""
    name = world.store()
    world.refuses = True
    assert redrive(muster, world, name, "--to", world.url).exit_code == 0
    world.broker.pump()
    assert world.letters()
    assert name not in world.letters()


def test_only_named_letters_are_sent(muster: Muster, world: RedriveCluster) -> None:
    """The others stay."""
    first, second = world.store(), world.store(id="2")
    (line,) = redrive(muster, world, first, "--to", world.url).stdout.splitlines()
    assert_names(line, first)
    assert world.letters() == [second]
    unknown = redrive(muster, world, "dead-letter-x")
    assert unknown.exit_code == 2
    (line,) = unknown.stderr.splitlines()
    assert_names(line, "dead-letter-x")


def test_each_letter_that_is_sent_is_shown(
    muster: Muster, world: RedriveCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker may take seconds for each."""
    steps: list[str] = []
    monkeypatch.setattr(redrive_command, "step_shown", noting(steps))
    name = world.store()
    redrive(muster, world, "--all", "--to", world.url)
    assert f"sending {name}" in steps


def test_broker_that_does_not_answer(muster: Muster, world: RedriveCluster) -> None:
    """The letter is kept, and the command fails."""
    name = world.store()
    kept = redrive(muster, world, "--all", "--to", "http://127.0.0.1:1/muster-system/muster")
    assert kept.exit_code == 1
    assert_names(kept.stdout, name)
    assert world.letters() == [name]


def test_a_redirect_is_no_acceptance(muster: Muster, world: RedriveCluster) -> None:
    """It may lead to a page for logging in, which answers 200; the letter is kept."""
    name = world.store()
    moved = ScriptedResponse(302, headers={"Location": "/login"})
    with serving(moved, ScriptedResponse(200, {"page": "login"})) as server:
        kept = redrive(muster, world, "--all", "--to", server.url)
    assert kept.exit_code == 1
    assert_names(kept.stdout, name, "302")
    assert world.letters() == [name]


def test_broker_that_is_not_there(muster: Muster, world: RedriveCluster) -> None:
    """On a cluster without Knative the broker has to be named."""
    name = world.store()
    sent = redrive(muster, world, "--all")
    assert sent.exit_code == 1
    (line,) = sent.stderr.splitlines()
    assert_names(line, "Broker muster-system/muster", "--to")
    assert world.letters() == [name]


def test_one_bad_letter_does_not_hold_up_the_rest(muster: Muster, world: RedriveCluster) -> None:
    """Counts of any length, characters that no header has, and ConfigMaps that hold no event."""
    world.store(id="digits", musterredrive="9" * 5000)
    world.store(id="letters", team="\u05d0\U0001f600")
    broken = world.store(id="broken")
    letter = world.client.get(CONFIGMAPS, broken, HOME)
    assert letter is not None
    letter["data"]["event.json"] = "[" * 100_000
    world.client.replace(CONFIGMAPS, letter, manager="test")
    world.store(id="last")
    sent = redrive(muster, world, "--all", "--to", world.url)
    assert sent.exit_code == 1
    assert [line.split()[0] for line in sent.stdout.splitlines() if "kept:" in line] == [f"{broken}:"]
    world.broker.pump()
    assert {event["id"] for event in world.heard} == {"digits", "letters", "last"}
    assert {event["team"] for event in world.heard if event["id"] == "letters"} == {"\u05d0\U0001f600"}
    assert world.letters() == [broken]


def test_a_broker_that_fails_on_one_letter_gets_the_others(world: RedriveCluster) -> None:
    """Whatever is raised for a letter is its error, and it is kept."""
    world.store(id="1")
    world.store(id="2")
    first, second = list_letters(world.client, HOME)

    def send(event: Any) -> str:
        if event["id"] == first.letter.event["id"]:  # type: ignore[union-attr]
            raise Unavailable("no answer")
        return ""

    assert "no answer" in send_again(world.client, HOME, first, send)
    assert send_again(world.client, HOME, second, send) == ""
    assert world.letters() == [first.name]


def test_control_characters_are_escaped(muster: Muster, world: RedriveCluster) -> None:
    """The answer of a function, of which a sender chooses parts."""
    answer = base64.b64encode(b"\x1b]0;owned\x07\x1b[2J \xe2\x80\xae").decode()
    world.store(knativeerrordata=answer)
    printed = redrive(muster, world).stdout
    assert printed.isascii()
    assert not set(printed) & {"\x1b", "\x07"}
    assert r"\x1b]0;owned\x07\x1b[2J" in printed


def test_event_without_its_data_is_kept(muster: Muster, world: RedriveCluster) -> None:
    """It would be refused as unreadable; the words say what to do instead."""
    name = world.store(data={"words": "x" * LETTER_BYTES})
    sent = redrive(muster, world, "--all", "--to", world.url)
    assert sent.exit_code == 1
    (line,) = sent.stdout.splitlines()
    assert_names(line, name)
    assert world.letters() == [name]
    assert world.broker.idle()


def test_forget(muster: Muster, world: RedriveCluster) -> None:
    """Deleted, not sent."""
    name = world.store()
    (line,) = redrive(muster, world, name, "--forget").stdout.splitlines()
    assert_names(line, name)
    assert world.letters() == []
    assert world.broker.idle()


@pytest.mark.parametrize(
    "address",
    [
        pytest.param(f"http://victim.team-b.svc/{HOME}/muster", id="another Service"),
        pytest.param(f"http://broker-ingress.team-b.svc/{HOME}/muster", id="another namespace"),
        pytest.param(f"{KNATIVE}/{HOME}/other", id="another broker"),
        pytest.param(f"{KNATIVE}/team-b/../{HOME}/muster", id="dots in the path"),
        pytest.param(f"{KNATIVE}/{HOME}/muster?a=b", id="a query"),
        pytest.param(f"{KNATIVE}/../../../../nodes/node-1/proxy/run", id="a path out of the proxy"),
        pytest.param(f"{KNATIVE}:9092/{HOME}/muster", id="another port"),
        pytest.param(f"http://broker-ingress.knative-eventing.svc@victim/{HOME}/muster", id="a login"),
        pytest.param(f"ftp://broker-ingress.knative-eventing.svc/{HOME}/muster", id="another scheme"),
        pytest.param("http://a:99999/x", id="no port"),
        pytest.param("http://[x/", id="no URL"),
        pytest.param("http://a\u2100b/", id="no host"),
    ],
)
def test_no_other_address_is_sent_to(muster: Muster, world: RedriveCluster, address: str) -> None:
    """Whoever may write a Broker's status would choose what is asked with the operator's rights."""
    name = world.store()
    put_broker(world, address)
    sent = redrive(muster, world, "--all")
    assert (sent.exit_code, sent.stdout) == (1, "")
    (line,) = sent.stderr.splitlines()
    assert_names(line, "Broker muster-system/muster", printable(address), "--to")
    assert world.letters() == [name]


def test_the_refused_address_is_cut(muster: Muster, world: RedriveCluster) -> None:
    """The line says what to do."""
    world.store()
    put_broker(world, "http://" + "x" * 9_000)
    assert len(redrive(muster, world, "--all").stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        pytest.param(("--kubeconfig", "/nowhere"), "/nowhere", id="no such kubeconfig"),
        pytest.param(("--all", "name"), "--all", id="all and one"),
    ],
)
def test_bad_input(muster: Muster, arguments: tuple[str, ...], name: str) -> None:
    """One line, exit code 2."""
    result = muster("redrive", *arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert name in line
