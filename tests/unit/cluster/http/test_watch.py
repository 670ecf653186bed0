"""A watch of the client against a scripted HTTP server: lines, pieces of lines, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from muster.cluster import errors
from muster.cluster.http import answer_json, watch_lines
from muster.cluster.http.client import Client
from muster.objects.resources import PODS
from tests.unit.cluster.scripted import ScriptedResponse, serving, status


def _line(kind: object, name: str) -> bytes:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "resourceVersion": "7"}}
    return json.dumps({"type": kind, "object": pod}).encode() + b"\n"


def _dense(memory: int) -> bytes:
    """A line whose many values take so much memory, though it has few bytes."""
    return _line("ADDED", "a")[:-3] + b', "spec": [' + b"1," * (memory // 200) + b"1]}}\n"


@contextmanager
def _other_watch(
    large: bytes, other_line: bytes = b""
) -> Iterator[tuple[Iterator[tuple[str, Any]], Future[int]]]:
    """Have one watch whose large object is in use, and another, which counts its objects."""
    answers = [ScriptedResponse(chunks=(line,)) for line in (large, other_line or large)]
    with serving(*answers) as server, ThreadPoolExecutor(1) as other:
        client = Client.for_server(server.url)
        first = client.watch(PODS)
        next(first)
        yield first, other.submit(lambda: len(list(client.watch(PODS))))


_NAMELESS = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"resourceVersion": "7"}},
    {"apiVersion": "v1", "kind": 1, "metadata": {"name": "a", "resourceVersion": "7"}},
    {"kind": "Pod", "metadata": {"name": "a", "resourceVersion": "7"}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": {}}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "resourceVersion": "7", "namespace": []}},
    {"apiVersion": "v1", "kind": "Pod", "metadata": []},
    {"apiVersion": "v1", "kind": "Pod"},
]
"""Objects that lack a field which all have, or have one of another type."""


class TestWatch:
    """Lines of JSON that come in pieces, until the server ends them."""

    def test_lines_may_be_split_over_chunks(self) -> None:
        """A chunk may hold half a line, or one and a half; empty lines are nothing."""
        text = _line("ADDED", "a") + b"\n" + _line("MODIFIED", "ü") + _line("DELETED", "c")
        pieces = (text[:10], text[10:70], text[70:71], text[71:])
        with serving(ScriptedResponse(chunks=pieces)) as server:
            seen = list(Client.for_server(server.url).watch(PODS, "team-a", labels="x", resource_version="9"))
        assert [(kind, body["metadata"]["name"]) for kind, body in seen] == [
            ("ADDED", "a"),
            ("MODIFIED", "ü"),
            ("DELETED", "c"),
        ]
        assert server.requests[0].query == {
            "watch": "true",
            "labelSelector": "x",
            "resourceVersion": "9",
            "timeoutSeconds": "300",
            "allowWatchBookmarks": "true",
        }

    def test_a_line_that_was_cut_off_is_dropped(self) -> None:
        """The caller resumes from the last whole one."""
        with serving(ScriptedResponse(chunks=(_line("ADDED", "a"), b'{"type": "MOD'))) as server:
            assert len(list(Client.for_server(server.url).watch(PODS))) == 1

    def test_a_version_that_is_too_old_in_the_stream(self) -> None:
        """An ERROR event of 410 after others: list again."""
        error = json.dumps({"type": "ERROR", "object": status(410, "Expired", "too old")}).encode() + b"\n"
        with serving(ScriptedResponse(chunks=(_line("ADDED", "a"), error))) as server:
            stream = Client.for_server(server.url).watch(PODS)
            assert next(stream)[0] == "ADDED"
            with pytest.raises(errors.Expired, match="too old"):
                next(stream)

    def test_a_version_that_is_too_old_at_the_start(self) -> None:
        """An answer of 410 means the same."""
        with serving(ScriptedResponse(410, status(410, "Expired"))) as server, pytest.raises(errors.Expired):
            next(Client.for_server(server.url).watch(PODS, resource_version="1"))

    def test_an_answer_that_breaks_off_ends_the_watch(self) -> None:
        """Without an error: watchers resume."""
        body = _line("ADDED", "a")
        with serving(ScriptedResponse(body=body, headers={"Content-Length": str(len(body) + 50)})) as server:
            assert len(list(Client.for_server(server.url).watch(PODS))) <= 1

    def test_a_line_without_end_is_no_line(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Nor is an error: an object has 1.5 MiB."""
        monkeypatch.setattr(watch_lines, "LONGEST_LINE", 2**20)
        answer = ScriptedResponse(chunks=(_line("ADDED", "a"), *[b"x" * 2**16] * 40))
        with serving(answer) as server:
            stream = Client.for_server(server.url).watch(PODS)
            assert next(stream)[0] == "ADDED"
            with pytest.raises(errors.AnswerTooLarge):
                next(stream)

    def test_a_bookmark_has_a_version_alone(self) -> None:
        """And an object of its kind."""
        line = b'{"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "8"}}}\n'
        with serving(ScriptedResponse(chunks=(line,))) as server:
            (change,) = Client.for_server(server.url).watch(PODS)
        assert change == ("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "8"}})

    @pytest.mark.parametrize(
        "line",
        [
            b"[]",
            b'"x"',
            b"{}",
            b'{"type": "ADDED", "object": 7}',
            b"<html>",
            b'{"type": "BOOKMARK", "object": {"metadata": {}}}',
            _line("CHANGED", "a").strip(),
            _line(["ADDED"], "a").strip(),
            *(json.dumps({"type": "ADDED", "object": pod}).encode() for pod in _NAMELESS),
        ],
    )
    def test_lines_of_another_shape(self, line: bytes) -> None:
        """A proxy may answer anything with 200."""
        with serving(ScriptedResponse(chunks=(line + b"\n",))) as server, pytest.raises(errors.Unavailable):
            next(Client.for_server(server.url).watch(PODS))

    @pytest.mark.thorough
    def test_a_line_of_too_many_values_is_not_parsed(self) -> None:
        """In eight watches at once they would take gigabytes."""
        line = b'{"type": "ADDED", "object": {"spec": [' + b"1," * answer_json.MOST_VALUES + b"1]}}\n"
        with serving(ScriptedResponse(chunks=(line,))) as server, pytest.raises(errors.AnswerTooLarge):
            next(Client.for_server(server.url).watch(PODS))

    def test_large_objects_in_use_share_the_memory(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The one of another watch comes when the next change after the first is asked for."""
        monkeypatch.setattr(watch_lines, "_BUDGET", watch_lines.Budget(3 * watch_lines.LIGHT))
        with _other_watch(_dense(2 * watch_lines.LIGHT)) as (first, second):
            with pytest.raises(TimeoutError):
                second.result(0.2)
            assert list(first) == []
            assert second.result(10) == 1

    def test_small_objects_wait_for_no_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As most are, even of a cluster of large ones."""
        monkeypatch.setattr(watch_lines, "_BUDGET", watch_lines.Budget(3 * watch_lines.LIGHT))
        with _other_watch(_dense(4 * watch_lines.LIGHT), _line("ADDED", "small")) as (_first, second):
            assert second.result(10) == 1

    def test_a_watch_that_ends_gives_its_memory_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whether it reads a long line, or its object is in use."""
        budget = watch_lines.Budget(watch_lines.MEMORY)
        monkeypatch.setattr(watch_lines, "_BUDGET", budget)
        unfinished = b"x" * (2 * watch_lines.LONGEST_PART)
        with serving(ScriptedResponse(chunks=(_dense(2**20), unfinished))) as server:
            stream = Client.for_server(server.url).watch(PODS)
            next(stream)
            del stream
            assert list(Client.for_server(server.url).watch(PODS))
        budget.take(budget.memory)

    def test_one_long_line_is_read_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Its object needs no more than the budget, which it has then."""
        budget = watch_lines.Budget(watch_lines.MEMORY)
        monkeypatch.setattr(watch_lines, "_BUDGET", budget)
        budget.take(1)
        long = _line("ADDED", "x" * 2 * watch_lines.LONGEST_PART)
        with serving(ScriptedResponse(chunks=(long,))) as server, ThreadPoolExecutor(1) as other:
            stream = other.submit(lambda: len(list(Client.for_server(server.url).watch(PODS))))
            with pytest.raises(TimeoutError):
                stream.result(0.2)
            budget.give_back(1)
            assert stream.result(10) == 1
