"""`muster redrive` reads letters one by one: tenants may write large ones, with line breaks."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.cli import redrive as redrive_command
from muster.cluster.http.client import Client
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.paging import Page
from muster.objects.resources import CONFIGMAPS, NAMESPACES
from muster.operator import redrive as redrive_of_operator
from muster.operator.redrive import list_letters, redrive
from muster.simulator.apiserver import ApiServer
from tests.unit.cli.conftest import Muster, assert_names, noting

HOME = "muster-system"
EVENT = {"specversion": "1.0", "id": "1", "source": "/a", "type": "added"}


def a_letter(name: str, event: dict[str, str]) -> dict[str, Any]:
    """A ConfigMap with the label of dead letters."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": HOME, "labels": {"muster.dev/dead-letter": "true"}},
        "data": {"event.json": json.dumps(event)},
    }


@pytest.fixture
def stored() -> Iterator[tuple[ApiServer, Callable[[str, dict[str, str]], object]]]:
    """An API server with Muster's namespace, and what stores a letter there."""
    with ApiServer() as server:
        client = Client.for_server(server.url)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
        client.create(NAMESPACES, namespace, manager="test")
        yield server, lambda name, event: client.create(CONFIGMAPS, a_letter(name, event), manager="test")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "large",
    [
        pytest.param({"data": "x" * 1_000_000}, id="data"),
        pytest.param({"team": "x" * 1_000_000}, id="an attribute"),
        pytest.param({"subject": "x" * 1_000_000}, id="an attribute that is shown"),
        pytest.param({"x" * 500_000 + "\n": ""}, id="the name of an attribute, in an error"),
    ],
)
def test_little_is_kept_of_large_letters(large: dict[str, str]) -> None:
    """A team whose namespace Muster shares can write hundreds of a megabyte."""

    class LargeLetters(Snapshot):
        def page(self, *_: Any, token: str = "", **__: Any) -> Page:
            letter = a_letter(f"large-{token}", EVENT | large | {"id": f"1{token}"})
            letter["metadata"] |= {"uid": "1", "creationTimestamp": "2026-11-21T08:00:00Z"}
            return Page([letter], f"{token}1" if len(token) < 40 else "")

    cluster: Any = LargeLetters([])
    tracemalloc.start()
    letters = list_letters(cluster, HOME)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(letters) == 41
    assert kept < 500_000
    assert peak < 20_000_000


def test_the_whole_event_is_sent(stored: Any) -> None:
    """Of a list its outline is kept."""
    server, store = stored
    client = Client.for_server(server.url)
    store("whole", EVENT | {"team": "x" * 1_000, "data": "y" * 1_000})
    (letter,) = list_letters(client, HOME)
    assert redrive(client, HOME, letter, lambda event: f"{event['team']} {event['data']}") == (
        f"kept: {'x' * 1_000} {'y' * 1_000}"
    )
    assert redrive(client, HOME, letter, lambda _event: "") == ""
    assert list_letters(client, HOME) == []


def test_a_letter_that_was_deleted_meanwhile_is_not_sent(stored: Any) -> None:
    """Another redrive has sent it; one that took its name since is another letter."""
    server, store = stored
    client = Client.for_server(server.url)
    store("same", EVENT)
    (letter,) = list_letters(client, HOME)
    client.delete(CONFIGMAPS, "same", HOME)
    gone = redrive(client, HOME, letter, lambda _event: pytest.fail("sent"))
    store("same", EVENT)
    assert redrive(client, HOME, letter, lambda _event: pytest.fail("sent")) == gone
    assert len(list_letters(client, HOME)) == 1


def test_a_line_break_in_an_event_makes_no_line(muster: Muster, stored: Any, tmp_path: Path) -> None:
    """It could say of a letter that is kept that it was sent."""
    server, store = stored
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    store("odd", EVENT | {"x\nodd: sent again\n": "y"})
    sent = muster(
        "redrive", "--kubeconfig", str(tmp_path / "kubeconfig"), "--all", "--to", "http://127.0.0.1:1"
    )
    assert sent.exit_code == 1
    (line,) = sent.stdout.splitlines()
    assert_names(line, r"x\nodd: sent again\n")


def test_each_letter_that_is_read_is_shown(
    muster: Muster,
    stored: tuple[ApiServer, Callable[[str, dict[str, str]], object]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Hundreds of a megabyte take more than a minute."""
    server, store = stored
    store("one", EVENT)
    store("two", EVENT)
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    steps: list[str] = []
    monkeypatch.setattr(redrive_command, "step_shown", noting(steps))
    assert muster("redrive", "--kubeconfig", str(tmp_path / "kubeconfig")).exit_code == 0
    assert steps == ["reading letters", "reading letter 1", "reading letter 2"]


def test_no_more_letters_are_listed_than_fit_into_memory(
    stored: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40,000 ConfigMaps of 3.5 KB beside those of dead-letter took 1.2 GiB."""
    server, store = stored
    monkeypatch.setattr(redrive_of_operator, "MOST_LETTERS", 2)
    for name in ("one", "three", "two"):
        store(name, EVENT | {"id": name})
    assert [letter.name for letter in list_letters(Client.for_server(server.url), HOME)] == ["one", "three"]
