"""One line of JSON per event with the identity of the event and its object, never a whole object."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muster.cluster import errors
from muster.objects.meta import KubernetesObject
from muster.runtime.handle import Handler
from muster.runtime.telemetry import logs
from tests.unit.runtime.fakes import FakeCluster, a_handler, a_step, an_event, raises


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """The loggers are left as they were found."""
    handlers, level, propagate = logs.LOGGER.handlers, logs.LOGGER.level, logs.LOGGER.propagate
    root_handlers, root_level = logging.root.handlers, logging.root.level
    yield
    logging.root.handlers = root_handlers
    logging.root.setLevel(root_level)
    logs.LOGGER.handlers, logs.LOGGER.propagate = handlers, propagate
    logs.LOGGER.setLevel(level)


@pytest.fixture
def written(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict[str, Any]]]:
    """A function that handles an event and gives the lines written to standard output, parsed."""

    def handle(
        handler: Handler, headers: dict[str, str], body: bytes, level: str = "INFO"
    ) -> list[dict[str, Any]]:
        logs.configure(level)
        handler.handle(headers, body)
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return handle


def test_warnings_of_libraries_are_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A server's error has its trace within the line; what urllib3 says of retries is left out."""
    logs.configure("INFO")
    logging.getLogger("asyncio").error("Unhandled exception", exc_info=ValueError("broken"))
    logging.getLogger("urllib3.connectionpool").warning("Retrying")
    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["level"], line["message"]) == ("ERROR", "Unhandled exception")
    assert "ValueError: broken" in line["trace"]


def test_attributes_of_a_sender_are_cut(written: Any) -> None:
    """A sender that writes long attributes fills no log."""
    change = {"id": "i" * 2000, "type": "t" * 2000}
    (line,) = written(a_handler(), *an_event(**change))
    assert (line["event"], line["type"]) == ("i" * 128, "t" * 128)
    assert len(json.dumps(line)) < 2048


def test_line_of_an_event(written: Any) -> None:
    """Who, what, how it ended, in how many calls and writes, and how long it took."""
    (line,) = written(a_handler(cluster_name="eu-1"), *an_event())
    assert line.pop("duration_ms") >= 0
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "message": "2 gates lifted",
        "step": "patch_pods",
        "event": "421c",
        "type": "dev.knative.apiserver.resource.update",
        "kind": "Pod",
        "namespace": "team-a",
        "name": "llama-0",
        "cluster": "eu-1",
        "outcome": "done",
        "reason": "GatesLifted",
        "status": 202,
        "actions": 2,
        "api_calls": 3,
    }


def test_bug_has_its_trace(written: Any) -> None:
    """A bug is an error with its trace, in one line like all others."""
    (line,) = written(a_handler(a_step(plan=raises(ZeroDivisionError("by zero")))), *an_event())
    assert (line["level"], line["outcome"], line["reason"]) == ("ERROR", "bug", "UnexpectedError")
    assert line["trace"].startswith("Traceback")
    assert "ZeroDivisionError: by zero" in line["trace"]


def test_traces_have_no_values_of_objects(written: Any) -> None:
    """An object of the cluster with a field of a wrong type is a bug, and its value may be a password."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"db": {"password": "hunter2"}}}}
    step = a_step(plan=lambda _inputs, _now: KubernetesObject.read(pod))
    (line,) = written(a_handler(step), *an_event())
    assert line["reason"] == "UnreadableObject"
    assert "ValidationError" in line["trace"]
    assert "hunter2" not in json.dumps(line)


@pytest.mark.parametrize(
    ("change", "cluster", "level", "outcome"),
    [
        pytest.param({}, FakeCluster(on_read=errors.Conflict("x")), "WARNING", "come_again", id="come again"),
        pytest.param({"specversion": "0.3"}, FakeCluster(), "WARNING", "unreadable", id="unreadable"),
        pytest.param({"type": "com.example"}, FakeCluster(), "INFO", "nothing", id="nothing to do"),
    ],
)
def test_level_and_trace(
    written: Any, change: dict[str, str], cluster: FakeCluster, level: str, outcome: str
) -> None:
    """What may need a person is a warning; only bugs have a trace."""
    (line,) = written(a_handler(cluster=cluster), *an_event(**change))
    assert (line["level"], line["outcome"], "trace" in line) == (level, outcome, False)


def test_unreadable_event_is_named_by_its_headers(written: Any) -> None:
    """What could not be read is found again by what its headers claim, checked or not, but cut."""
    headers, body = an_event(source="", id="x" * 999)
    (line,) = written(a_handler(), headers, body)
    assert (line["event"], line["type"]) == ("x" * 128, "dev.knative.apiserver.resource.update")
    assert "ce-source" in line["message"]
    (line,) = written(a_handler(), {"content-type": "text/plain"}, b"")
    assert "event" not in line


def test_quiet_level(written: Any) -> None:
    """At WARNING the lines of events that went well are not written."""
    assert written(a_handler(), *an_event(), level="WARNING") == []


def test_no_line_is_forged_and_none_is_endless(written: Any) -> None:
    """Text from outside stays within its line, and is cut."""
    forged = 'a\n{"level": "INFO"}'
    cluster = FakeCluster(on_read=errors.Unavailable(forged + "x" * 9999))
    (line,) = written(a_handler(cluster=cluster), *an_event())
    assert forged in line["message"]
    assert len(line["message"]) == 1024


def test_object_stays_out_of_the_log(written: Any) -> None:
    """Nothing of the event's object but its kind and name is written, even for a bug."""
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "llama-0", "annotations": {"token": "hunter2"}},
        "spec": {"schedulingGates": "hunter2"},
    }
    handler = a_handler(a_step(predicate=raises(ZeroDivisionError("x"))))
    (line,) = written(handler, an_event()[0], json.dumps(body).encode())
    assert line["name"] == "llama-0"
    assert "hunter2" not in json.dumps(line)
