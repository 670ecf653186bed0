"""Answers of another shape or size than an API server's, which a proxy or an attacker may give."""

from __future__ import annotations

import json
import resource
import tracemalloc
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster import errors, paging
from muster.cluster.http import answer_json, connections
from muster.cluster.http.answer_json import (
    DEEPEST,
    LARGE_ANSWER,
    MOST_VALUES,
    has_too_many_values,
    parsed,
    parsing_with,
)
from muster.cluster.http.client import Client
from muster.cluster.http.connections import Connections, read_body
from muster.cluster.interface import PatchType
from muster.cluster.paging import PageSizes
from muster.cluster.read import each
from muster.objects.meta import ObjectRef
from muster.objects.resources import PODS
from muster.policy.model import Action, Verb
from tests.support import cpu
from tests.unit.cluster.scripted import ScriptedResponse, serving

Call = Callable[[Client], Any]

MEBIBYTE = 1024 * 1024


def _get(client: Client) -> Any:
    return client.get(PODS, "llama-0", "team-a")


def test_values_that_are_nested_too_deeply_are_null() -> None:
    """A tenant's managedFields, as kube-apiserver 1.37.1 stores them; the rest of the list is read."""
    nested = '{"f:a":[' * 3000 + "1" + "]}" * 3000
    hostile = f'{{"metadata": {{"name": "a\\"{{[", "managedFields": [{nested}]}}}}'
    answer = parsed(f'{{"items": [{hostile}, {{"metadata": {{"name": "b"}}}}]}}'.encode())
    assert [item["metadata"]["name"] for item in answer["items"]] == ['a"{[', "b"]
    levels = json.dumps(answer["items"][0]).count("f:a")
    assert DEEPEST / 2 - 5 < levels < DEEPEST / 2
    assert isinstance(parsed(f'{{"items": {nested}'.encode()), str)


TEXTS = st.text('"\\[{]},:a\n')
VALUES = st.recursive(
    st.none() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8
)


@pytest.mark.thorough
@given(before=VALUES, after=VALUES, slice_bytes=st.integers(1, 50))
def test_values_beside_one_that_is_nested_too_deeply_are_kept(
    before: Any, after: Any, slice_bytes: int
) -> None:
    """Strings may have quotes and brackets."""
    nested = "[" * 300 + "]" * 300
    text = f"[{json.dumps(before)}, {nested}, {json.dumps(after)}]"
    with patch.object(answer_json, "_SLICE", slice_bytes):
        answer = parsed(text.encode())
    assert (answer[0], json.dumps(answer[1]), answer[2]) == (before, "[" * 99 + "null" + "]" * 99, after)


def test_lone_surrogates_are_question_marks() -> None:
    """A text with one could not be sent, nor written to a file."""
    assert parsed(rb'{"a\udfff": ["\ud800b", "\ud83d\ude00"]}') == {"a?": ["?b", "\U0001f600"]}
    assert parsed(rb'["\ud800", "\\ud800\\\ud83d\ud83d\ude00"]') == ["?", "\\ud800\\?\U0001f600"]


@pytest.mark.parametrize("deep", ["", "[" * 300 + "]" * 300 + ","], ids=["flat", "deep"])
def test_bytes_that_are_no_utf_8_are_question_marks(deep: str) -> None:
    """A tenant's managedFields, as kube-apiserver stores them; the rest of the list is read."""
    hostile = (
        b'{"metadata": {"name": "a", "managedFields": [%s{"f:\xff\xc3": "\xe2\x82\xac"}]}}' % deep.encode()
    )
    answer = parsed(b'{"items": [%s, {"metadata": {"name": "b"}}]}' % hostile)
    assert [item["metadata"]["name"] for item in answer["items"]] == ["a", "b"]
    assert answer["items"][0]["metadata"]["managedFields"][-1] == {"f:??": "\N{EURO SIGN}"}


@pytest.mark.parametrize(
    ("name", "most"),
    [(b'"a\xff"', 4), (rb'"a\ud800"', 4), (b"[" * 300 + b"]" * 300, 5)],
    ids=["no UTF-8", "half a character", "deep"],
)
def test_one_odd_value_costs_little(name: bytes, most: float) -> None:
    """A tenant's; of a page of 1 MB of annotations it cost five to nine times as much as to parse it."""
    item = b'{"metadata": {"name": "a%d", "annotations": {"a": "b"%s}}}'
    annotations = b"".join(b', "a%d": ""' % number for number in range(500))
    page = b'{"items": [%s]}' % b",".join(item % (number, annotations) for number in range(100))
    odd = page.replace(b'"name": "a99"', b'"name": ' + name)
    assert len(parsed(odd)["items"]) == 100
    ratios = (cpu.seconds_of(lambda: parsed(odd)) / cpu.seconds_of(lambda: parsed(page)) for _ in range(5))
    assert min(ratios) < most


def test_an_answer_of_many_values_is_not_parsed() -> None:
    """They would take 80 bytes each, and an answer may have 64 MiB."""
    dense = b'{"metadata": {"name": "a"}, "b": [' + b"[]," * (MOST_VALUES // 2) + b"[]]}"
    with serving(ScriptedResponse(chunks=(dense,))) as server:
        client = Client.for_server(server.url)
        for call in (_get, lambda client: client.list(PODS), lambda client: client.raw("GET", "/version")):
            with pytest.raises(errors.AnswerTooLarge):
                call(client)


@pytest.mark.parametrize("items", [[], [{"metadata": {"name": "a"}}] * 2])
def test_a_list_that_goes_on_for_ever_is_left(items: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its pages have objects or not."""
    monkeypatch.setattr(paging, "MOST_OBJECTS", 7)
    answers = [
        ScriptedResponse(body={"metadata": {"resourceVersion": "5", "continue": str(number)}, "items": items})
        for number in range(9)
    ]
    for call in (lambda client: client.list(PODS), lambda client: list(each(client, PODS))):
        with serving(*answers) as server, pytest.raises(errors.Unavailable):
            call(Client.for_server(server.url))
        assert len(server.requests) == (4 if items else 8)


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "creationTimestamp"])
def test_a_list_with_a_name_of_another_length_is_refused(field: str) -> None:
    """Commands keep those of all objects."""
    item = {"metadata": {"name": "a", field: "x" * 300}}
    answer = ScriptedResponse(body={"metadata": {"resourceVersion": "5"}, "items": [item]})
    with serving(answer) as server, pytest.raises(errors.Unavailable):
        Client.for_server(server.url).list(PODS)


class _Chunks:
    """An answer that comes byte by byte."""

    def read1(self, _most: int) -> bytes:
        return b"x"

    def close(self) -> None:
        """Nothing is open."""


def test_a_body_is_read_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """`read` keeps all chunks of HTTP until it has enough, at 140 bytes each: 3 GiB for 22 MB."""
    chunks: Any = _Chunks()
    assert read_body(chunks, 3, "GET /") == b"xxx"
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.0)
    with pytest.raises(errors.Unavailable):
        read_body(chunks, 3, "GET /")


def test_a_body_is_in_memory_once() -> None:
    """Each of the largest objects has 9 MiB as JSON."""
    size = 4 * MEBIBYTE
    with serving(ScriptedResponse(chunks=(b"x" * 2**16,) * (size // 2**16))) as server:
        url = f"{server.url}/"
        response = urllib3.PoolManager(retries=False).request("GET", url, preload_content=False)
        tracemalloc.start()
        try:
            assert len(read_body(response, 2 * size, "GET /")) == size
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            response.close()
    assert most < 1.5 * size


def test_clients_wait_before_they_read_a_large_answer() -> None:
    """Once, however long it is; not before usual ones."""
    waits: list[int] = []
    usual, large = ({"metadata": {"name": "x" * size}} for size in (1, 4 * LARGE_ANSWER))
    with serving(ScriptedResponse(body=usual), ScriptedResponse(body=large)) as server:
        client = Client.for_server(server.url)
        for body, waited in ((usual, []), (large, [1])):
            with parsing_with(parsed, lambda: waits.append(1)):
                assert _get(client) == body
            assert waits == waited


class _WholeAnswer:
    """An answer that came before it is read."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.ended: list[str] = []

    def read1(self, most: int) -> bytes:
        """As much as is asked for."""
        part = b"x" * min(most, self.left)
        self.left -= len(part)
        return part

    def close(self) -> None:
        """Note it."""
        self.ended.append("closed")

    def release_conn(self) -> None:
        """Note it."""
        self.ended.append("released")


def test_little_is_in_memory_of_a_large_answer_for_which_a_client_waits() -> None:
    """As many wait as events are in work."""
    waits: list[int] = []
    usual: Any = _WholeAnswer(LARGE_ANSWER)
    large: Any = _WholeAnswer(MEBIBYTE)
    with parsing_with(parsed, lambda: waits.append(large.left)):
        assert len(read_body(usual, 2 * MEBIBYTE, "GET /")) == LARGE_ANSWER
        assert len(read_body(large, 2 * MEBIBYTE, "GET /")) == MEBIBYTE
    assert waits == [MEBIBYTE - LARGE_ANSWER - 1]


def test_an_answer_that_may_not_be_read_is_not_taken_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its connection is closed before another call gets it: the rest is still to come on it."""
    large = _WholeAnswer(MEBIBYTE)
    monkeypatch.setattr(Connections, "open", lambda *_: large)

    def refuse() -> None:
        raise errors.Unavailable("until then large objects of other events were read")

    with parsing_with(parsed, refuse), pytest.raises(errors.Unavailable, match="large objects"):
        _get(Client.for_server("http://127.0.0.1:1"))
    assert large.ended == ["closed", "released"]


def test_metrics_of_many_labels_are_read() -> None:
    """They are text, and have a comma for each label."""
    text = b"# HELP a\n" + b'a{b="c",d="e"} 1\n' * MOST_VALUES
    assert not has_too_many_values(text)
    assert has_too_many_values(b" [" + text)


def test_escapes_beside_deep_values_take_no_memory() -> None:
    """One value is nested too deeply, another has a million escapes, with an end or cut off."""
    page = b'{"deep": ' + b"[" * 300 + b"]" * 300 + b', "text": "' + b'\\"' * 1_000_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert parsed(page + b'"}')["text"] == '"' * 1_000_000
    assert isinstance(parsed(page), str)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 * 1024  # in KiB


def test_of_a_large_odd_answer_one_copy_is_made() -> None:
    """A Job of 1.4 MB has 8 MB of such escapes; the answer, its copies and the text took 33."""
    text = b"\\u003c" * 1_000_000
    answer = b'{"text": "' + text + b'", "deep": ' + b"[" * 300 + b"]" * 300 + b"}"
    tracemalloc.start()
    try:
        assert parsed(answer)["text"] == "<" * 1_000_000
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1.5 * len(answer)


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        pytest.param(_get, {}, id="a proxy answers an empty object"),
        pytest.param(_get, {"metadata": "x"}, id="metadata is a text"),
        pytest.param(lambda client: client.list(PODS), {"metadata": {}}, id="a list without a version"),
        pytest.param(
            lambda client: client.list(PODS),
            {"metadata": {"resourceVersion": "5"}, "items": [7]},
            id="an item is a number",
        ),
        pytest.param(
            lambda client: client.list(PODS),
            {"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"uid": "x"}}]},
            id="an item has no name",
        ),
        pytest.param(
            lambda client: client.list(PODS),
            {"metadata": {"resourceVersion": "5"}, "items": {"a": "b"}},
            id="the items are an object",
        ),
        pytest.param(
            lambda client: client.list(PODS),
            {"metadata": {"resourceVersion": "5", "continue": "same"}, "items": []},
            id="a list that never ends",
        ),
        pytest.param(
            lambda client: list(each(client, PODS)),
            {"metadata": {"resourceVersion": "5", "continue": "same"}, "items": []},
            id="pages that never end",
        ),
        pytest.param(
            lambda client: client.served_versions("batch"), {"versions": [1]}, id="a version is a number"
        ),
        pytest.param(_get, json.loads("[" * 400 + "]" * 400), id="a list in a list in a list"),
    ],
)
def test_answers_of_another_shape_are_no_bug(call: Call, answer: Any) -> None:
    """What answers may be a proxy, or an attacker; the error is one that can be tried again."""
    with (
        serving(*[ScriptedResponse(200, answer)] * 3) as server,
        pytest.raises(errors.Unavailable),
    ):
        call(Client.for_server(server.url))


@pytest.mark.parametrize(
    ("status", "fields", "error"),
    [
        (403, {"details": {"causes": 5}}, errors.Forbidden),
        (403, {"details": {"causes": ["x"]}}, errors.Forbidden),
        (404, {"details": ["x"]}, errors.ApiGone),
        (410, {"metadata": ["x"]}, errors.Expired),
        (504, {"details": "x"}, errors.Unavailable),
    ],
)
def test_errors_of_another_shape_are_the_error_of_their_status(
    status: int, fields: dict[str, Any], error: type[errors.ClusterError]
) -> None:
    """A Status with fields of other types counts as one without them."""
    found = errors.from_answer(status, {"kind": "Status", **fields}, {})
    assert type(found) is error


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ScriptedResponse(302, b"", {"Location": "/login"}), id="a redirect"),
        pytest.param(ScriptedResponse(200, b"<html>log in</html>"), id="a page"),
        pytest.param(ScriptedResponse(200, {"login": "/login"}), id="another JSON object"),
        pytest.param(ScriptedResponse(204, b""), id="no content"),
    ],
)
def test_what_is_no_object_does_not_confirm_a_change(answer: ScriptedResponse) -> None:
    """The event would be acknowledged although nothing was written."""
    action = Action(
        Verb.PATCH, ObjectRef("v1", "Pod", "team-a", "llama-0"), {"metadata": {}}, patch=PatchType.MERGE
    )
    with serving(answer) as server, pytest.raises(errors.Unavailable):
        Client.for_server(server.url).write(action, "m")


def test_no_answer_is_read_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of one object has no limit of its own; its list ends with an error, and does not begin again."""
    monkeypatch.setattr(connections, "MOST_BYTES", 1000)
    pages = PageSizes(1, 100)
    answer = ScriptedResponse(200, {"metadata": {"name": "x" * 2000}})
    with serving(*[answer] * 5) as server:
        client = Client.for_server(server.url)
        client._pages = pages
        for call in (_get, lambda client: client.list(PODS)):
            with pytest.raises(errors.AnswerTooLarge):
                call(client)
    assert len(server.requests) == 2
