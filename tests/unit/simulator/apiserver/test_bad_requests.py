"""Requests that no client sends are answered as the real server answers them: in one line, without a bug."""

from __future__ import annotations

import http.client
import json
import socket
from contextlib import closing

import pytest

from muster.simulator.apiserver import ApiServer
from muster.simulator.apiserver.http.http_server import MAX_BODY
from tests.cluster.api import APPLY, JSON, MERGE_PATCH, KubernetesApi
from tests.contract.bodies import config_map

PATH = "/api/v1/namespaces/default/configmaps"
YAML = "application/yaml"
DIGITS = "9" * 5_000


def _answer(
    server: ApiServer, method: str, path: str, body: bytes = b"", media_type: str = JSON
) -> tuple[int, dict[str, object]]:
    """Send bytes; return the status and the Status object."""
    host = server.url.removeprefix("http://")
    with closing(http.client.HTTPConnection(host, timeout=20)) as connection:
        connection.request(method, path, body, {"Content-Type": media_type})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@pytest.fixture(autouse=True)
def existing(api: KubernetesApi) -> None:
    """Two objects, one of which is patched and deleted."""
    for name in ("a", "b"):
        assert api.request("POST", PATH, config_map(name)).ok


@pytest.mark.parametrize(
    ("method", "path", "body", "media_type"),
    [
        pytest.param("POST", PATH, b"[" * 100_000, JSON, id="deep JSON"),
        pytest.param("PATCH", f"{PATH}/a", b"[" * 100_000, MERGE_PATCH, id="a deep patch"),
        pytest.param("PATCH", f"{PATH}/a?fieldManager=a", b"[" * 100_000, APPLY, id="a deep applied object"),
        pytest.param("DELETE", f"{PATH}/a", b"[" * 100_000, JSON, id="deep options"),
        pytest.param("POST", PATH, b"[" * 5_000, YAML, id="deep YAML"),
        pytest.param("POST", PATH, b"2001-99-99", YAML, id="a month that there is not"),
        pytest.param("POST", PATH, b"!!bool x", YAML, id="a value of another tag"),
        pytest.param(
            "POST", PATH, b"&a {metadata: {name: c}, data: *a}", YAML, id="an object that is in itself"
        ),
        pytest.param("DELETE", f"{PATH}/a", b'{"gracePeriodSeconds": "x"}', JSON, id="a text of seconds"),
        pytest.param("DELETE", PATH, b'{"gracePeriodSeconds": 1e400}', JSON, id="endless seconds"),
        pytest.param("DELETE", f"{PATH}/a?gracePeriodSeconds=x", b"", JSON, id="a parameter of seconds"),
    ],
)
def test_bodies_that_cannot_be_read_are_bad_requests(
    server: ApiServer,
    capfd: pytest.CaptureFixture[str],
    method: str,
    path: str,
    body: bytes,
    media_type: str,
) -> None:
    """No bug, whose trace would be printed."""
    status, answer = _answer(server, method, path, body, media_type)
    assert (status, answer["reason"]) == (400, "BadRequest")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=abc", 'strconv.ParseInt: parsing "abc": invalid syntax'),
        ("limit=1e400", 'strconv.ParseInt: parsing "1e400": invalid syntax'),
        (f"limit={DIGITS}", f'strconv.ParseInt: parsing "{DIGITS}": value out of range'),
        ("resourceVersion=abc", 'strconv.ParseUint: parsing "abc": invalid syntax'),
        ("resourceVersion=-1", 'strconv.ParseUint: parsing "-1": invalid syntax'),
        (f"resourceVersion={DIGITS}", f'strconv.ParseUint: parsing "{DIGITS}": value out of range'),
        (f"watch=1&resourceVersion={DIGITS}", f'strconv.ParseUint: parsing "{DIGITS}": value out of range'),
        ("watch=1&timeoutSeconds=nan", 'strconv.ParseInt: parsing "nan": invalid syntax'),
    ],
)
def test_parameters_that_are_no_numbers_are_bad_requests(
    server: ApiServer, capfd: pytest.CaptureFixture[str], query: str, message: str
) -> None:
    """Those of watches too, before their answers begin."""
    status, answer = _answer(server, "GET", f"{PATH}?{query}")
    assert (status, answer["reason"], answer["message"]) == (400, "BadRequest", message)
    assert capfd.readouterr().err == ""


def test_a_negative_limit_is_none(api: KubernetesApi) -> None:
    """As in the real server, which looks whether it is more than 0."""
    assert len(api.request("GET", f"{PATH}?limit=-1").body["items"]) == 2


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(b"Content-Length: -1\r\n\r\n", 400, id="a negative length"),
        pytest.param(b"Content-Length: x\r\n\r\n", 400, id="no length"),
        pytest.param(f"Content-Length: {MAX_BODY + 1}\r\n\r\n".encode(), 413, id="a body that is too long"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n-5\r\n", 400, id="a negative chunk"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n" + b"1;" * 4_096, 400, id="an endless line"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n7fffffffff\r\n", 413, id="a chunk that is too long"),
        pytest.param(
            b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n%x\r\n" % (MAX_BODY - 1),
            413,
            id="chunks that are too long together",
        ),
    ],
)
def test_bodies_without_end_are_not_read(server: ApiServer, head: bytes, status: int) -> None:
    """The answer comes while the client still sends."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(f"POST {PATH} HTTP/1.1\r\nHost: a\r\n".encode() + head)
        assert connection.recv(12) == f"HTTP/1.1 {status}".encode()


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("foo", r'299 - "unknown field \"foo\""'),
        ("\x1b\r\nX-Y: z", r'299 - "unknown field \"\\u001b\\r\\nX-Y: z\""'),
        ("\x7f", r'299 - "unknown field \"\\x7f\""'),
        ('"', r'299 - "unknown field \"\\\"\""'),
        ("\U0001f600", '299 - "unknown field \\"\U0001f600\\""'),
    ],
)
def test_an_unknown_field_makes_no_header_of_its_own(server: ApiServer, name: str, warning: str) -> None:
    """Its name is quoted and escaped; the header is UTF-8, as that of the real server."""
    with closing(http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=20)) as connection:
        connection.request("POST", PATH, json.dumps({**config_map("c"), name: 1}), {"Content-Type": JSON})
        headers = connection.getresponse().headers
    assert headers["X-Y"] is None
    assert headers["Warning"].encode("latin-1").decode() == warning
