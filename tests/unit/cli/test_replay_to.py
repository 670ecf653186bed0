"""`muster replay --to`: events over HTTP, the report about the answers, and refused input."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from muster.local.serving import WsgiServer
from tests.unit.cli.conftest import Filed, Muster, assert_names
from tests.unit.cli.sample import an_event

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


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
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
            ["--speed", "--mode", "--count", "--to"],
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
