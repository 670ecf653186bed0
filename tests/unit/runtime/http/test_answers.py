"""The HTTP answer for each outcome, by which a broker decides whether to deliver the event again."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from muster.cluster import errors
from muster.policy.model import NoOp
from muster.policy.owners.jobset import JobSet
from muster.policy.reasons import Reason
from muster.runtime.http.responses import MEANINGS, HttpAnswer
from muster.runtime.sharing.deadline_client import DeadlineExceeded
from muster.runtime.sharing.list_memory import NoRoomForObjects, TooManyObjects
from muster.simulator.broker.delivery import LONGEST_ANSWER
from tests.unit.runtime.fakes import DONE, NOW, FakeCluster, a_handler, a_step, an_event, raises


def said(answer: HttpAnswer) -> tuple[int, str, str]:
    """Status, reason and Retry-After of an answer that is no success."""
    return answer.status, json.loads(answer.body)["reason"], answer.headers.get("Retry-After", "")


def unreadable_jobset() -> ValidationError:
    """What reading a JobSet raises whose replicas are a word."""
    with pytest.raises(ValidationError) as caught:
        JobSet.read(
            {
                "apiVersion": "jobset.x-k8s.io/v1alpha2",
                "kind": "JobSet",
                "metadata": {"name": "llama", "labels": {"password": "hunter2"}},
                "spec": {"replicatedJobs": [{"name": "node", "replicas": "three"}]},
            }
        )
    return caught.value


@pytest.mark.parametrize(
    "decision",
    [
        pytest.param(replace(DONE, reply=None), id="a plan that was carried out, without a reply"),
        pytest.param(NoOp(Reason.UP_TO_DATE), id="nothing to do"),
        pytest.param(NoOp(Reason.OBJECT_GONE), id="the object is gone, or another one has its name"),
        pytest.param(NoOp(Reason.AWAITING_JOBSET), id="too early, but another event continues"),
    ],
)
def test_done_and_nothing_are_202_without_a_body(decision: Any) -> None:
    """202 has no body and no content type: a broker takes a 2xx with any other body for a failed delivery."""
    answer = a_handler(a_step(plan=lambda _inputs, _now: decision)).handle(*an_event())
    assert answer == HttpAnswer(202, {}, b"")


def test_reply_is_200_with_exactly_one_cloudevent() -> None:
    """A step's reply is the answer itself, in binary mode."""
    answer = a_handler().handle(*an_event())
    assert answer.status == 200
    assert answer.headers["ce-type"] == "dev.muster.patch_pods.gates_lifted"
    assert answer.headers["ce-id"] == "421c.patch_pods"
    assert answer.headers["ce-time"] == "2026-11-21T08:00:00Z"
    assert json.loads(answer.body)["pods"] == 2


def test_retry_is_answered_with_the_same_event() -> None:
    """A client that gets both replies sees that they are the same."""
    handler = a_handler()
    first, second = handler.handle(*an_event()), handler.handle(*an_event())
    assert first == second


@pytest.mark.parametrize(
    "decision",
    [
        pytest.param(
            NoOp(Reason.BEING_DELETED, requeue=True),
            id="a name that is free as soon as its holder is gone",
        ),
        pytest.param(replace(DONE, requeue=True), id="a plan that only cleared the way"),
    ],
)
def test_come_again_is_409(decision: Any) -> None:
    """A decision may ask for the event once more; then there is no reply event."""
    answer = a_handler(a_step(plan=lambda _inputs, _now: decision)).handle(*an_event())
    assert said(answer) == (409, decision.reason, "1")


@pytest.mark.parametrize(
    ("error", "want"),
    [
        pytest.param(
            errors.Conflict("written in between"), (409, "Conflict", "1"), id="another writer came in between"
        ),
        pytest.param(errors.AlreadyExists("taken"), (409, "AlreadyExists", "1"), id="the name is taken"),
        pytest.param(
            errors.TooManyRequests("slow down", retry_after=2.5),
            (429, "TooManyRequests", "3"),
            id="429: the server's own Retry-After, rounded up",
        ),
        pytest.param(
            errors.TooManyRequests("slow down"),
            (429, "TooManyRequests", "1"),
            id="429 without Retry-After: ours",
        ),
        pytest.param(
            errors.Unavailable("connection refused"), (503, "Unavailable", "1"), id="the API server is away"
        ),
        pytest.param(
            errors.Unavailable("starting", status=503, retry_after=10),
            (503, "Unavailable", "10"),
            id="the API server is starting and says for how long",
        ),
        pytest.param(errors.Expired("too old"), (503, "Expired", "1"), id="410: the list must begin anew"),
        pytest.param(
            errors.Unauthorized("no"), (503, "Unauthorized", "1"), id="401: the credentials may be renewed"
        ),
        pytest.param(errors.Forbidden("no"), (503, "Forbidden", "1"), id="403: the role may be granted"),
        pytest.param(
            errors.Invalid("spec.x: wrong"),
            (500, "Invalid", ""),
            id="422: Muster asked for something impossible",
        ),
        pytest.param(KeyError("uid"), (500, "UnexpectedError", ""), id="a bug"),
    ],
)
@pytest.mark.parametrize("moment", ["on_read", "on_write"])
def test_error_of_the_cluster(error: Exception, want: tuple[int, str, str], moment: str) -> None:
    """The API server's error has one meaning, when a step reads and when it writes."""
    assert said(a_handler(cluster=FakeCluster(**{moment: error})).handle(*an_event())) == want


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(
            errors.Terminating("being terminated"), Reason.DELETED, id="the namespace is being deleted"
        ),
        pytest.param(errors.Gone("not found"), Reason.OBJECT_GONE, id="the object went away in between"),
        pytest.param(errors.ApiGone("not found"), Reason.API_NOT_SERVED, id="the API is not served here"),
    ],
)
@pytest.mark.parametrize("moment", ["on_read", "on_write"])
def test_a_deleted_object_needs_nothing(
    error: Exception, reason: Reason, moment: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is gone needs no step, and no second delivery."""
    caplog.set_level("INFO", "muster")
    assert a_handler(cluster=FakeCluster(**{moment: error})).handle(*an_event()).status == 202
    assert caplog.records[-1].fields["reason"] == reason  # type: ignore[attr-defined]  # our own extra


def test_every_class_of_error_has_a_meaning() -> None:
    """A class added to the cluster's errors must be given its answer."""

    def below(kind: type[errors.ClusterError]) -> set[type[errors.ClusterError]]:
        return {kind}.union(*(below(subclass) for subclass in kind.__subclasses__()))

    named = {kind for kind in below(errors.ClusterError) if kind.__module__ == errors.__name__}
    assert (named - {errors.ClusterError}) | {DeadlineExceeded, NoRoomForObjects, TooManyObjects} == set(
        MEANINGS
    )


@pytest.mark.parametrize("stage", ["predicate", "observe", "plan", "execute"])
def test_bug_in_any_stage_is_500(stage: str) -> None:
    """A bug is 500, so that the event comes again, perhaps to a repaired Muster."""
    handler = a_handler(a_step(**{stage: raises(ZeroDivisionError("by zero"))}))
    assert said(handler.handle(*an_event())) == (500, "UnexpectedError", "")


def test_answers_have_no_text_of_unexpected_errors() -> None:
    """A library may have written a token into it."""
    handler = a_handler(a_step(plan=raises(ValueError("Invalid header value b'Bearer secret'"))))
    answer = json.loads(handler.handle(*an_event()).body)
    assert answer == {"reason": "UnexpectedError", "message": "ValueError"}


def test_reply_that_cannot_be_made_is_a_bug() -> None:
    """A reply whose data no JSON can hold is a bug, and is answered as one."""
    assert DONE.reply is not None
    odd = replace(DONE, reply=replace(DONE.reply, data={"when": NOW, "what": object()}))
    handler = a_handler(a_step(plan=lambda _inputs, _now: odd))
    assert said(handler.handle(*an_event())) == (500, "UnexpectedError", "")


def test_unreadable_object_in_the_cluster() -> None:
    """An object that no view fits is named with the path of its fault, not with its content."""
    answer = a_handler(a_step(observe=raises(unreadable_jobset()))).handle(*an_event())
    assert said(answer)[:2] == (500, "UnreadableObject")
    message = json.loads(answer.body)["message"]
    assert "JobSet" in message
    assert "spec.replicatedJobs[0].replicas" in message
    assert "hunter2" not in message
    assert "pydantic" not in message


def test_unreadable_object_in_the_event() -> None:
    """The same fault in the event's own object is the sender's: 400."""
    answer = a_handler(a_step(predicate=raises(unreadable_jobset()))).handle(*an_event())
    assert said(answer)[:2] == (400, "UnreadableEvent")
    message = json.loads(answer.body)["message"]
    assert "data.spec.replicatedJobs[0].replicas" in message


def test_unreadable_event_is_400() -> None:
    """An event that cannot be read is refused with path and reason; a broker keeps it as a dead letter."""
    headers, body = an_event()
    del headers["ce-id"]
    answer = a_handler().handle(headers, body)
    content = json.loads(answer.body)
    assert (answer.status, content["reason"], set(content)) == (400, "UnreadableEvent", {"reason", "message"})
    assert "ce-id" in content["message"]


@pytest.mark.parametrize(
    "character",
    [
        pytest.param("x", id="one byte"),
        pytest.param('"', id="escaped in JSON"),
        pytest.param("ü", id="six bytes in JSON"),
        pytest.param("\U0001f600", id="twelve bytes in JSON"),
    ],
)
def test_no_answer_is_longer_than_knatives_dispatcher_survives(character: str) -> None:
    """A longer answer ends the process in which all accepted events wait; as much is kept as fits."""
    answer = a_handler(cluster=FakeCluster(on_read=errors.Unavailable(character * 5000))).handle(*an_event())
    assert LONGEST_ANSWER - 12 < len(answer.body) <= LONGEST_ANSWER
    assert json.loads(answer.body)["reason"] == "Unavailable"
