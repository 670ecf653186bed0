"""The client against a scripted HTTP server: requests, answers and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.http import connections
from muster.cluster.http.client import Client
from muster.objects.resources import PODS
from tests.unit.cluster.scripted import ScriptedResponse, serving, status

Call = Callable[[Client], Any]
POD: dict[str, Any] = {"metadata": {"name": "llama-0", "namespace": "team-a"}}
TERMINATING = {"reason": "NamespaceTerminating", "message": "going", "field": "metadata.namespace"}


def _get(client: Client) -> Any:
    return client.get(PODS, "llama-0", "team-a")


def _create(client: Client) -> Any:
    return client.create(PODS, POD, manager="muster-test")


@pytest.mark.parametrize(
    ("code", "body", "error"),
    [
        (400, status(400, "BadRequest"), errors.Invalid),
        (401, status(401, "Unauthorized"), errors.Unauthorized),
        (403, status(403, "Forbidden"), errors.Forbidden),
        (403, status(403, "Forbidden", causes=[TERMINATING]), errors.Terminating),
        (404, status(404, "NotFound", name="llama-0"), errors.Gone),
        (404, b"404 page not found", errors.ApiGone),
        (409, status(409, "AlreadyExists"), errors.AlreadyExists),
        (409, status(409, "Conflict"), errors.Conflict),
        (410, status(410, "Expired"), errors.Expired),
        (422, status(422, "Invalid"), errors.Invalid),
        (429, status(429, "TooManyRequests"), errors.TooManyRequests),
        (500, status(500, "InternalError"), errors.Unavailable),
        (200, b"<html>hello", errors.Unavailable),
    ],
)
def test_every_answer_is_one_class(code: int, body: Any, error: type[errors.ClusterError]) -> None:
    """The class says what to do; the number is asked for nowhere else."""
    with serving(ScriptedResponse(code, body)) as server, pytest.raises(errors.ClusterError) as caught:
        _create(Client.for_server(server.url))
    assert (type(caught.value), caught.value.status) == (error, code)


@pytest.mark.parametrize("call", [_get, lambda client: client.delete(PODS, "llama-0", "team-a")])
def test_an_object_that_is_gone_is_none(call: Call) -> None:
    """And nothing to delete, as long as the API itself is served."""
    with serving(ScriptedResponse(404, status(404, "NotFound", name="llama-0"))) as server:
        assert call(Client.for_server(server.url)) is None
    with serving(ScriptedResponse(404, b"404 page not found")) as server, pytest.raises(errors.ApiGone):
        call(Client.for_server(server.url))


@pytest.mark.parametrize("name", ["../../team-b/pods/llama-0", "llama-0/log", ""])
def test_a_name_leads_to_no_other_object(name: str) -> None:
    """The API server takes any text as the name in an ownerReference; what is none is not asked for."""
    with serving(ScriptedResponse(200, POD)) as server:
        assert Client.for_server(server.url).get(PODS, name, "team-a") is None
    assert server.requests == []


def _page(*names: str, more: str = "") -> ScriptedResponse:
    items = [{"metadata": {"name": name}} for name in names]
    return ScriptedResponse(200, {"metadata": {"continue": more, "resourceVersion": "5"}, "items": items})


def _expired(token: str = "") -> ScriptedResponse:
    return ScriptedResponse(410, status(410, "Expired") | {"metadata": {"continue": token}})


@pytest.mark.parametrize(
    ("as_of", "answers", "positions"),
    [
        ("", [_page("a", more="c"), _page("b")], [{}, {"continue": "c"}]),
        ("7", [_expired(), _page("a", "b")], [{"resourceVersion": "7", "resourceVersionMatch": "Exact"}, {}]),
        ("0", [_page("a", "b")], [{"resourceVersion": "0"}]),
        ("", [_page("a", more="c"), _expired("d"), _page("b")], [{}, {"continue": "c"}, {"continue": "d"}]),
        ("", [_page("x", more="c"), _expired(), _page("a", "b")], [{}, {"continue": "c"}, {}]),
    ],
    ids=[
        "two pages",
        "an old state",
        "of the cache",
        "an expired token is replaced",
        "or the list begins anew",
    ],
)
def test_lists(as_of: str, answers: list[ScriptedResponse], positions: list[dict[str, str]]) -> None:
    """Selectors go with every page; items get apiVersion and kind as a GET would give."""
    with serving(*answers) as server:
        objects, version = Client.for_server(server.url).list_with_version(
            PODS, "team-a", labels="a=b", fields="c=d", as_of=as_of
        )
    assert objects == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in "ab"]
    assert version == "5"
    asked = {"limit": "500", "labelSelector": "a=b", "fieldSelector": "c=d"}
    assert [request.query for request in server.requests] == [asked | position for position in positions]


@pytest.mark.parametrize(
    "reply",
    [ScriptedResponse(hold=True), ScriptedResponse(body=b'{"kind":', headers={"Content-Length": "500"})],
    ids=["no answer in time", "it breaks off"],
)
def test_no_whole_answer(reply: ScriptedResponse, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above."""
    monkeypatch.setattr(connections, "READ_SECONDS", 0.2)
    with serving(reply) as server, pytest.raises(errors.Unavailable):
        _get(Client.for_server(server.url))


def _line(kind: str, body: Any) -> bytes:
    return json.dumps({"type": kind, "object": body}).encode() + b"\n"


def test_a_watch_yields_lines() -> None:
    """A line that is cut off is dropped; an ERROR says that the version is too old: list again."""
    lines = _line("ADDED", POD) + b"\n" + _line("DELETED", POD)
    with serving(ScriptedResponse(body=lines + b'{"type": "MOD')) as server:
        assert [*Client.for_server(server.url).watch(PODS, "team-a", resource_version="9")] == [
            ("ADDED", POD),
            ("DELETED", POD),
        ]
    expired = status(410, "Expired")
    for answer in (ScriptedResponse(body=_line("ERROR", expired)), ScriptedResponse(410, expired)):
        with serving(answer) as server, pytest.raises(errors.Expired):
            next(Client.for_server(server.url).watch(PODS))
