"""`muster replay --to`: events over HTTP, the report about the answers, and refused input."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from muster.cli import replay
from muster.local.serving import WsgiServer
from tests.unit.cli.conftest import Filed, Muster, assert_names, noting
from tests.unit.cli.sample import a_job, a_namespace, an_event
from tests.unit.cluster.scripted import ScriptedResponse, serving

STREAM = [an_event(id=str(number), namespace="team", name=f"sweep-{number}") for number in (1, 2, 3, 4)]


class _RefusingFunction:
    """Takes every event but those it is configured to refuse; knows what came."""

    def __init__(self) -> None:
        self.came: list[dict[str, str]] = []
        self.refuses: set[str] = set()
        self.url = ""

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        number = environ.get("HTTP_CE_ID", "structured")
        self.came.append({"id": number, "type": environ["CONTENT_TYPE"]})
        environ["wsgi.input"].read()
        if number in self.refuses:
            body = json.dumps({"reason": "Conflict", "message": "changed meanwhile"}).encode()
            start_response("409 Conflict", [("Retry-After", "2"), ("Content-Type", "application/json")])
            return [body]
        reply = {"specversion": "1.0", "id": "r", "source": "/f", "type": "dev.muster.f.created"}
        start_response("200 OK", [(f"ce-{name}", value) for name, value in reply.items()])
        return []


def without_duration(summary: str) -> str:
    """Return a line of a summary without the seconds it took, which differ from run to run."""
    return re.sub(r"\d+\.\d+ s\b", "SECONDS s", summary)


@pytest.fixture
def function() -> Iterator[_RefusingFunction]:
    """Served on loopback."""
    made = _RefusingFunction()
    served = WsgiServer(made, "function")
    made.url = f"http://127.0.0.1:{served.port}"
    yield made
    served.stop()


def test_each_answer_is_a_line_and_refusals_are_the_exit_status(
    muster: Muster, filed: Filed, function: _RefusingFunction
) -> None:
    """Status, Retry-After, the reply's type, the reason; then how often each."""
    function.refuses = {"2"}
    result = muster("replay", filed("e.json", STREAM[:2]), "--to", function.url)
    assert result.exit_code == 1
    first, second, _, *counts = result.stdout.splitlines()
    assert_names(first, "Job", "add", "team/sweep-1", "200", "dev.muster.f.created")
    assert_names(second, "team/sweep-2", "409", "Retry-After 2", "Conflict", "changed meanwhile")
    assert counts == ["  200: 1", "  409: 1", "  dev.muster.f.created: 1"]


def test_the_event_that_is_sent_is_shown(
    muster: Muster, filed: Filed, function: _RefusingFunction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endpoint may answer a byte in three seconds, for an hour."""
    steps: list[str] = []
    monkeypatch.setattr(replay, "step_shown", noting(steps))
    muster("replay", filed("e.json", STREAM[:2]), "--to", function.url)
    assert [step for step in steps if step.startswith("sending event")][:2] == [
        "sending event 1",
        "sending event 2",
    ]


def test_a_million_deliveries_are_refused(muster: Muster, filed: Filed) -> None:
    """They would be arranged in memory first."""
    result = muster("replay", filed("e.json", STREAM), "--to", "http://127.0.0.1:1", "--duplicates", "250000")
    assert result.exit_code == 2
    assert_names(result.stderr, "1000004", "--duplicates")


def test_all_taken_is_exit_status_0(muster: Muster, filed: Filed, function: _RefusingFunction) -> None:
    """In order, each once."""
    result = muster("replay", filed("e.json", STREAM), "--to", function.url)
    assert result.exit_code == 0, result.output
    assert [event["id"] for event in function.came] == ["1", "2", "3", "4"]


@pytest.mark.thorough
def test_shuffled_and_doubled_is_the_same_each_time(
    muster: Muster, filed: Filed, function: _RefusingFunction
) -> None:
    """A seed is an order; the ids stay as they were, as those of a retry do."""
    stream = filed("e.json", STREAM)
    for _ in range(2):
        result = muster("replay", stream, "--to", function.url, "--shuffle", "7", "--duplicates", "1")
        assert result.exit_code == 0
    sent = [event["id"] for event in function.came]
    assert sent[:8] == sent[8:]
    assert sorted(sent[:8]) == sorted("12341234")
    assert sent[:8] != sorted(sent[:8])


def test_structured_mode(muster: Muster, filed: Filed, function: _RefusingFunction) -> None:
    """One JSON object, and no attribute in the headers."""
    muster("replay", filed("e.json", STREAM[:1]), "--to", function.url, "--mode", "structured")
    assert function.came == [{"id": "structured", "type": "application/cloudevents+json"}]


def test_it_keeps_within_the_count(muster: Muster, filed: Filed, function: _RefusingFunction) -> None:
    """Of eight events to be sent, three are."""
    stream = filed("e.json", STREAM)
    result = muster("replay", stream, "--to", function.url, "--duplicates", "1", "--count", "3")
    assert result.exit_code == 0
    assert len(function.came) == 3
    summary = result.stdout.splitlines()[3]
    assert_names(summary, "3", "8")


@pytest.mark.thorough
def test_it_keeps_within_the_time(muster: Muster, filed: Filed, function: _RefusingFunction) -> None:
    """An event that is due after an hour is not waited for."""
    late = an_event(id="5", time="2026-11-21T09:17:25Z")
    stream = filed("e.json", [STREAM[0], late])
    result = muster("replay", stream, "--to", function.url, "--speed", "1", "--for", "0.3")
    assert result.exit_code == 0
    assert len(function.came) == 1
    summary = result.stdout.splitlines()[1]
    assert_names(summary, "1", "2")


@pytest.mark.parametrize("subject", ["a\r\nb: c", "\u202e"])
def test_an_event_that_no_header_can_have_is_refused(
    muster: Muster, filed: Filed, function: _RefusingFunction, subject: str
) -> None:
    """The other events are sent."""
    events = [an_event(id="1", name="sweep-1") | {"subject": subject}, STREAM[1]]
    result = muster("replay", filed("e.json", events), "--to", function.url)
    assert (result.exit_code, [event["id"] for event in function.came]) == (1, ["2"])


@pytest.mark.parametrize("status", [302, 303, 307, 308])
def test_a_redirect_to_another_server_is_not_followed(
    muster: Muster, filed: Filed, function: _RefusingFunction, status: int
) -> None:
    """It could be on any machine, and only this one was named."""
    moved = ScriptedResponse(status, headers={"Location": function.url})
    with serving(moved) as server:
        result = muster("replay", filed("e.json", STREAM[:1]), "--to", server.url)
    assert (result.exit_code, function.came) == (1, [])
    assert_names(result.stdout, "0 accepted, 1 refused", str(status))


def test_a_refused_connection_is_reported(muster: Muster, filed: Filed) -> None:
    """Refused for every event; the exit status shows it."""
    result = muster("replay", filed("e.json", STREAM[:1]), "--to", "http://127.0.0.1:1")
    assert result.exit_code == 1
    refusal, summary, count = result.stdout.splitlines()
    assert_names(refusal, "Job", "add", "team/sweep-1")
    assert_names(summary, "0", "1")
    assert count.endswith(": 1")


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        pytest.param(
            ["--to", "http://broker.example.com/"],
            ["--to", "broker.example.com", "--beyond-this-machine"],
            id="another machine",
        ),
        pytest.param(
            ["--to", "http://127.0.0.1.example.com/"],
            ["--to", "127.0.0.1.example.com", "--beyond-this-machine"],
            id="another machine that looks like this one",
        ),
        pytest.param(
            ["--to", "127.0.0.1:8080"],
            ["--to", "127.0.0.1:8080", "URL"],
            id="no URL",
        ),
        pytest.param(
            ["--to", "http://127.0.0.1:1", "--sweep"],
            ["--sweep", "--to"],
            id="an option of the embedded server",
        ),
        pytest.param(
            ["--speed", "1"],
            ["--speed", "--mode", "--count", "--for", "--beyond-this-machine", "--to"],
            id="an option of --to without it",
        ),
    ],
)
def test_bad_arguments_for_sending_are_refused(
    muster: Muster, filed: Filed, arguments: list[str], names: list[str]
) -> None:
    """In one line, before anything is sent."""
    result = muster("replay", filed("e.json", STREAM), *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert_names(line, *names)


def test_another_machine_may_be_allowed(muster: Muster, filed: Filed) -> None:
    """The name is then asked for: that it does not exist is reported."""
    stream = filed("e.json", STREAM[:1])
    result = muster("replay", stream, "--to", "http://muster.invalid/", "--beyond-this-machine", "--for", "5")
    assert (result.exit_code, result.stderr) == (1, "")
    assert "team/sweep-1" in result.stdout


@pytest.mark.parametrize("speed", ["-1", "fast", "nan", "inf"])
def test_a_speed_is_a_number_or_max(muster: Muster, filed: Filed, speed: str) -> None:
    """Click's own words."""
    result = muster("replay", filed("e.json", STREAM), "--to", "http://127.0.0.1:1", "--speed", speed)
    assert result.exit_code == 2
    line = result.stderr.splitlines()[-1]
    assert_names(line, "--speed", speed, "max")


def test_the_embedded_server_takes_streams_arranged_alike(muster: Muster, filed: Filed) -> None:
    """`--shuffle` and `--duplicates` are for both."""
    cluster = filed("c.json", {"kind": "List", "items": [a_namespace(), a_job()]})
    result = muster(
        "replay", filed("e.json", [an_event()]), "--objects", cluster, "--duplicates", "2", "--shuffle", "1"
    )
    assert result.exit_code == 0, result.output
    assert_names(result.stdout.splitlines()[0], "3")
