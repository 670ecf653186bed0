"""The client against a scripted HTTP server: requests, answers and errors, byte for byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.http import connections
from muster.cluster.http.client import Client
from muster.cluster.http.connections import CONNECTIONS
from muster.cluster.interface import PatchType
from muster.objects.meta import ObjectRef
from muster.objects.resources import JOBS, NODES, PODS
from muster.policy.model import Action, Verb
from tests.unit.cluster.scripted import ScriptedResponse, serving, status

Call = Callable[[Client], Any]
POD: dict[str, Any] = {"metadata": {"name": "llama-0", "namespace": "team-a"}}


def _get(client: Client) -> Any:
    return client.get(PODS, "llama-0", "team-a")


def _create(client: Client) -> Any:
    return client.create(PODS, POD, manager="muster-test")


NAMESPACE_GOES = {"reason": "NamespaceTerminating", "message": "going", "field": "metadata.namespace"}


@pytest.mark.parametrize(
    ("code", "body", "error"),
    [
        pytest.param(400, status(400, "BadRequest"), errors.Invalid, id="400 is invalid"),
        pytest.param(401, status(401, "Unauthorized"), errors.Unauthorized, id="401 is unauthorized"),
        pytest.param(403, status(403, "Forbidden"), errors.Forbidden, id="403 is forbidden"),
        pytest.param(
            403,
            status(403, "Forbidden", causes=[NAMESPACE_GOES]),
            errors.Terminating,
            id="403 of a terminating namespace",
        ),
        pytest.param(404, status(404, "NotFound", name="llama-0"), errors.Gone, id="404 of an object"),
        pytest.param(404, status(404, "NotFound"), errors.ApiGone, id="404 of an API"),
        pytest.param(404, status(404) | {"details": None}, errors.ApiGone, id="404 with null details"),
        pytest.param(
            404, b"404 page not found", errors.ApiGone, id="404 in plain text: the group is not served"
        ),
        pytest.param(408, status(408, "Timeout"), errors.Unavailable, id="408 is a time-out"),
        pytest.param(
            409, status(409, "AlreadyExists"), errors.AlreadyExists, id="409 of a name that is taken"
        ),
        pytest.param(409, status(409, "Conflict"), errors.Conflict, id="409 of a write in between"),
        pytest.param(409, b"", errors.Conflict, id="409 without a word"),
        pytest.param(410, status(410, "Expired"), errors.Expired, id="410 is expired"),
        pytest.param(413, b"too large", errors.Invalid, id="413 is invalid"),
        pytest.param(415, status(415), errors.Invalid, id="415 is invalid"),
        pytest.param(422, status(422, "Invalid"), errors.Invalid, id="422 is invalid"),
        pytest.param(429, status(429, "TooManyRequests"), errors.TooManyRequests, id="429 asks for patience"),
        pytest.param(500, status(500, "InternalError"), errors.Unavailable, id="500 is unavailable"),
        pytest.param(502, b"<html>bad gateway", errors.Unavailable, id="502 of a proxy is unavailable"),
        pytest.param(503, status(503), errors.Unavailable, id="503 is unavailable"),
    ],
)
def test_every_answer_is_one_class(code: int, body: Any, error: type[errors.ClusterError]) -> None:
    """The class says what to do; the number is asked for nowhere else."""
    with serving(ScriptedResponse(code, body)) as server, pytest.raises(errors.ClusterError) as caught:
        _create(Client.for_server(server.url))
    assert (type(caught.value), caught.value.status) == (error, code)


def test_an_error_has_the_servers_message() -> None:
    """Reason and message of the Status, the message cut to 1024 characters."""
    words = 'spec: "x" ' * 500
    reply = ScriptedResponse(422, status(422, "Invalid", words))
    with serving(reply) as server, pytest.raises(errors.Invalid) as caught:
        _create(Client.for_server(server.url))
    assert (caught.value.reason, caught.value.message) == ("Invalid", words[:1024])


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param({"Retry-After": "7"}, 7.0, id="seconds"),
        pytest.param({"Retry-After": "-1"}, 0.0, id="never below zero"),
        pytest.param({"Retry-After": "inf"}, 600.0, id="no more than ten minutes"),
        pytest.param({"Retry-After": "nan"}, 0.0, id="no number"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None, id="a date is not read"),
        pytest.param({}, None, id="nothing said"),
    ],
)
def test_retry_after(header: dict[str, str], seconds: float | None) -> None:
    """How long the server asks to wait."""
    with (
        serving(ScriptedResponse(429, status(429), header)) as server,
        pytest.raises(errors.TooManyRequests) as caught,
    ):
        _get(Client.for_server(server.url))
    assert caught.value.retry_after == seconds


def test_get_of_an_object_that_is_not_there() -> None:
    """None, as long as the API itself is served."""
    with serving(ScriptedResponse(404, status(404, "NotFound", name="llama-0"))) as server:
        assert _get(Client.for_server(server.url)) is None
    with serving(ScriptedResponse(404, b"404 page not found")) as server, pytest.raises(errors.ApiGone):
        _get(Client.for_server(server.url))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("../../team-b/pods/llama-0", id="of another namespace"),
        pytest.param("..", id="of the folder above"),
        pytest.param("llama-0/log", id="of a subresource"),
        pytest.param("llama-0?limit=1", id="with a query"),
        pytest.param("%2e%2e", id="in disguise"),
        pytest.param("", id="none"),
    ],
)
def test_a_name_leads_to_no_other_object(name: str) -> None:
    """The API server takes any text as the name in an ownerReference; what is none is not asked for."""
    with serving(ScriptedResponse(200, POD)) as server:
        assert Client.for_server(server.url).get(PODS, name, "team-a") is None
    assert server.requests == []


def test_delete_of_an_object_that_is_not_there() -> None:
    """Fine: that was the wish. But not where the API is not served."""
    with serving(ScriptedResponse(404, status(404, "NotFound", name="llama-0"))) as server:
        Client.for_server(server.url).delete(PODS, "llama-0", "team-a")
    with serving(ScriptedResponse(404, b"404 page not found")) as server, pytest.raises(errors.ApiGone):
        Client.for_server(server.url).delete(PODS, "llama-0", "team-a")


@pytest.mark.parametrize("verb", [Verb.PATCH, Verb.UPDATE])
def test_answers_to_changes_are_not_parsed(verb: Verb) -> None:
    """An object of 2 MiB takes 30 when it is parsed; errors are read."""
    action = Action(
        verb, ObjectRef("v1", "Pod", "team-a", "llama-0"), {"metadata": {}}, patch=PatchType.MERGE
    )
    with serving(ScriptedResponse(200, b'{"metadata":{' + b"[" * 100_000)) as server:
        assert Client.for_server(server.url).write(action, "m") == {}
    with serving(ScriptedResponse(409, status(409, "Conflict"))) as server, pytest.raises(errors.Conflict):
        Client.for_server(server.url).write(action, "m")


def test_a_patch_needs_a_media_type() -> None:
    """A plan without one is a bug, not an error of the cluster."""
    patch = Action(Verb.PATCH, ObjectRef("v1", "Pod", "team-a", "llama-0"), {})
    with serving() as server, pytest.raises(ValueError, match="Pod team-a/llama-0"):
        Client.for_server(server.url).write(patch, "m")
    assert server.requests == []


@pytest.mark.parametrize(
    ("call", "method", "path", "query", "content_type", "body"),
    [
        pytest.param(_get, "GET", "/api/v1/namespaces/team-a/pods/llama-0", {}, None, None, id="get"),
        pytest.param(
            lambda client: client.get(NODES, "n"),
            "GET",
            "/api/v1/nodes/n",
            {},
            None,
            None,
            id="get of a node",
        ),
        pytest.param(
            _create,
            "POST",
            "/api/v1/namespaces/team-a/pods",
            {"fieldManager": "muster-test"},
            "application/json",
            POD,
            id="create",
        ),
        pytest.param(
            lambda client: client.patch(
                JOBS, "j", "team-a", {"a": 1}, patch=PatchType.STRATEGIC, manager="m", subresource="status"
            ),
            "PATCH",
            "/apis/batch/v1/namespaces/team-a/jobs/j/status",
            {"fieldManager": "m"},
            "application/strategic-merge-patch+json",
            {"a": 1},
            id="patch of a status",
        ),
        pytest.param(
            lambda client: client.replace(PODS, POD, manager="m"),
            "PUT",
            "/api/v1/namespaces/team-a/pods/llama-0",
            {"fieldManager": "m"},
            "application/json",
            POD,
            id="replace",
        ),
        pytest.param(
            lambda client: client.delete(PODS, "llama-0", "team-a", uid="u1"),
            "DELETE",
            "/api/v1/namespaces/team-a/pods/llama-0",
            {},
            "application/json",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Background",
                "preconditions": {"uid": "u1"},
            },
            id="delete of one UID",
        ),
    ],
)
def test_requests(
    call: Call, method: str, path: str, query: dict[str, str], content_type: str | None, body: Any
) -> None:
    """What goes over the wire."""
    with serving(ScriptedResponse(200, POD)) as server:
        call(Client.for_server(server.url))
    (request,) = server.requests
    assert (request.method, request.path, request.query) == (method, path, query)
    assert (request.headers.get("content-type"), request.body) == (content_type, body)
    assert (request.headers["user-agent"], request.headers.get("authorization")) == ("muster", None)


def test_lists_are_read_page_by_page() -> None:
    """Selectors go with every page; items get apiVersion and kind as a GET would give."""
    pages = [
        ScriptedResponse(
            200,
            {"metadata": {"continue": "c1", "resourceVersion": "5"}, "items": [{"metadata": {"name": "a"}}]},
        ),
        ScriptedResponse(200, {"metadata": {"continue": "c2", "resourceVersion": "5"}, "items": None}),
        ScriptedResponse(200, {"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "b"}}]}),
    ]
    with serving(*pages) as server:
        objects, version = Client.for_server(server.url).list_with_version(
            PODS, "team-a", labels="a=b", fields="c=d"
        )
    assert objects == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in "ab"]
    assert version == "5"
    asked = {"limit": "500", "labelSelector": "a=b", "fieldSelector": "c=d"}
    assert [request.query for request in server.requests] == [
        asked,
        asked | {"continue": "c1"},
        asked | {"continue": "c2"},
    ]
    assert {request.path for request in server.requests} == {"/api/v1/namespaces/team-a/pods"}


def test_the_version_of_a_list_takes_one_object() -> None:
    """Its token is left: every page has the resourceVersion of the first."""
    page = {"metadata": {"continue": "c1", "resourceVersion": "5"}, "items": [{"metadata": {"name": "a"}}]}
    with serving(ScriptedResponse(200, page)) as server:
        assert Client.for_server(server.url).list_version(PODS, "team-a", labels="a=b") == "5"
    (request,) = server.requests
    assert (request.path, request.query) == (
        "/api/v1/namespaces/team-a/pods",
        {"limit": "1", "labelSelector": "a=b"},
    )


def test_discovery_lists_versions_and_resources() -> None:
    """Versions and resources by discovery; a group that is not served has none."""
    pages = [
        ScriptedResponse(200, {"versions": [{"version": "v1beta1"}, {"version": "v1alpha3"}]}),
        ScriptedResponse(200, {"resources": [{"name": "workloads"}, {"name": "podgroups/status"}]}),
        ScriptedResponse(200, {"resources": None}),
    ]
    with serving(*pages) as server:
        served = Client.for_server(server.url).served_versions("scheduling.k8s.io")
    assert served == {"v1beta1/workloads", "v1beta1/podgroups/status"}
    with serving(ScriptedResponse(404, b"404 page not found")) as server:
        assert Client.for_server(server.url).served_versions("scheduling.k8s.io") == frozenset()


READS = [pytest.param(_get, id="a get"), pytest.param(lambda client: client.raw("GET", "/x"), id="raw")]


class TestNoAnswer:
    """It is unknown whether the request was carried out: it comes again."""

    def test_connection_refused(self) -> None:
        """A refused connection."""
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        with pytest.raises(errors.Unavailable) as caught:
            _get(Client.for_server(f"http://127.0.0.1:{port}"))
        assert caught.value.status == 0

    @pytest.mark.parametrize("call", READS)
    def test_the_server_does_not_answer_in_time(self, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
        """A read time-out."""
        monkeypatch.setattr(connections, "READ_SECONDS", 0.05)
        with serving(ScriptedResponse(hold=True)) as server, pytest.raises(errors.Unavailable):
            call(Client.for_server(server.url))

    @pytest.mark.parametrize("call", READS)
    def test_the_answer_breaks_off(self, call: Call) -> None:
        """Fewer bytes than announced."""
        reply = ScriptedResponse(body=b'{"kind":', headers={"Content-Length": "500"})
        with serving(reply) as server, pytest.raises(errors.Unavailable):
            call(Client.for_server(server.url))

    def test_the_answer_is_no_object(self) -> None:
        """A proxy's page with status 200."""
        with (
            serving(ScriptedResponse(200, b"<html>hello")) as server,
            pytest.raises(errors.Unavailable) as caught,
        ):
            _get(Client.for_server(server.url))
        assert (caught.value.status, "/pods/llama-0" in caught.value.message) == (200, True)


@pytest.mark.thorough
def test_calls_that_come_at_once_use_their_connections_again() -> None:
    """More of them than the kubernetes package keeps on a machine of some CPUs."""
    at_once = CONNECTIONS
    with serving(ScriptedResponse(200, POD)) as server, ThreadPoolExecutor(at_once) as threads:
        server.together = threading.Barrier(at_once)
        client = Client.for_server(server.url)
        for _ in range(3):
            assert list(threads.map(lambda _: _get(client), range(at_once))) == [POD] * at_once
    assert server.connections == at_once


def test_raw_returns_any_answer() -> None:
    """Status and body, JSON or not, without an error."""
    with serving(ScriptedResponse(200, {"a": 1}), ScriptedResponse(404, b"404 page not found")) as server:
        client = Client.for_server(server.url)
        assert client.raw("POST", "/x", query={"q": "1"}, body={"b": 2}) == (200, {"a": 1})
        assert client.raw("GET", "/y") == (404, "404 page not found")
    assert (server.requests[0].query, server.requests[0].body) == ({"q": "1"}, {"b": 2})
