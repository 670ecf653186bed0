"""The HTTP answer to each outcome, by which a broker decides whether to deliver the event again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from muster.cluster import errors
from muster.objects.meta import KubernetesObject
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.runtime.http.responses import BODY_LIMIT, HttpAnswer
from muster.simulator.broker.delivery import LONGEST_ANSWER
from tests.unit.runtime.fakes import DONE, FakeCluster, a_client, a_handler, a_step, an_event, raises


def said(answer: HttpAnswer) -> tuple[int, str, str]:
    """Status, reason and Retry-After of an answer that is no success."""
    return answer.status, json.loads(answer.body)["reason"], answer.headers.get("Retry-After", "")


@pytest.mark.parametrize("decision", [replace(DONE, reply=None), NoOp(Reason.UP_TO_DATE)])
def test_done_and_nothing_are_202_without_a_body(decision: Any) -> None:
    """202 has no body and no content type: a broker takes a 2xx with any other body for a failed delivery."""
    answer = a_client(a_step(plan=lambda *_: decision)).post("/", headers=an_event()[0], data=an_event()[1])
    assert (answer.status_code, answer.data, answer.headers["Content-Length"]) == (202, b"", "0")
    assert "Content-Type" not in answer.headers


@pytest.mark.parametrize("decision", [NoOp(Reason.BEING_DELETED, requeue=True), replace(DONE, requeue=True)])
def test_come_again_is_409(decision: Any) -> None:
    """A decision may ask for the event once more; then there is no reply event."""
    answer = a_handler(a_step(plan=lambda _inputs, _now: decision)).handle(*an_event())
    assert said(answer) == (409, decision.reason, "1")


ANSWERS: dict[Exception, tuple[int, str, str]] = {
    errors.Conflict("x"): (409, "Conflict", "1"),
    errors.AlreadyExists("x"): (409, "Conflict", "1"),
    errors.TooManyRequests("x", retry_after=7): (429, "Unavailable", "7"),
    errors.Unavailable("x", retry_after=0.2): (503, "Unavailable", "1"),
    errors.Expired("x"): (503, "Unavailable", "1"),
    errors.Unauthorized("x"): (503, "Forbidden", "1"),
    errors.Forbidden("x"): (503, "Forbidden", "1"),
    errors.Invalid("x"): (500, "UnexpectedError", ""),
    errors.ClusterError("x"): (500, "UnexpectedError", ""),
    ZeroDivisionError("hunter2"): (500, "UnexpectedError", ""),
}
NOTHING = {
    errors.Terminating: Reason.DELETED,
    errors.Gone: Reason.DELETED,
    errors.ApiGone: Reason.API_NOT_SERVED,
}


@pytest.mark.parametrize(("error", "want"), ANSWERS.items(), ids=lambda part: type(part).__name__)
def test_error_of_a_step(error: Exception, want: tuple[int, str, str]) -> None:
    """What may pass comes again; what never will is a bug, whose text only the log has."""
    answer = a_handler(a_step(observe=raises(error))).handle(*an_event())
    assert said(answer) == want
    assert b"hunter2" not in answer.body


@pytest.mark.parametrize(("error", "reason"), NOTHING.items())
def test_what_is_gone_needs_nothing(
    error: type[errors.ClusterError], reason: Reason, caplog: pytest.LogCaptureFixture
) -> None:
    """202, with the reason in the log line."""
    caplog.set_level("DEBUG", "muster")
    assert a_handler(a_step(observe=raises(error("gone")))).handle(*an_event()) == HttpAnswer(202)
    assert caplog.records[-1].__dict__["fields"]["reason"] == reason


def test_an_object_that_cannot_be_read_is_named_without_its_values() -> None:
    """500, with the path of the field: no API server would have stored it."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"db": {"password": "hunter2"}}}}
    step = a_step(plan=lambda _inputs, _now: KubernetesObject.read(pod))
    answer = a_handler(step).handle(*an_event())
    assert said(answer)[:2] == (500, "UnreadableObject")
    assert "metadata.annotations" in json.loads(answer.body)["message"]
    assert b"hunter2" not in answer.body


def test_a_body_above_the_limit_is_413(caplog: pytest.LogCaptureFixture) -> None:
    """A broker does not send it again; the log has its line."""
    answer = a_client().post("/", headers=an_event()[0], data=b" " * (BODY_LIMIT + 1))
    assert (answer.status_code, answer.get_json()["reason"]) == (413, "UnreadableEvent")
    assert caplog.messages == [answer.get_json()["message"]]


@pytest.mark.parametrize("character", ["x", "ü"])
def test_no_answer_is_longer_than_knatives_dispatcher_survives(character: str) -> None:
    """A longer answer ends the process in which all accepted events wait; as much is kept as fits."""
    answer = a_handler(cluster=FakeCluster(on_read=errors.Unavailable(character * 5000))).handle(*an_event())
    assert LONGEST_ANSWER - 12 < len(answer.body) <= LONGEST_ANSWER
    assert json.loads(answer.body)["reason"] == "Unavailable"
