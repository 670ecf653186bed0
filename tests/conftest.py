"""The fixture `wording`, which compares the text of a message with tests/messages.yaml.

A test asserts reasons, field paths and objects, and calls `wording(text)` where the text matters as well.
After a deliberate change of wording, `make golden-update` rewrites the file; its diff shows the changes.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.objects import yaml_files

MESSAGES = Path(__file__).with_name("messages.yaml")
_EXPECTED: pytest.StashKey[dict[str, list[str]]] = pytest.StashKey()
_SEEN: pytest.StashKey[dict[str, list[str]]] = pytest.StashKey()

_THOROUGH = ("tests/stories/", "tests/faults/")
_WAITS = "tests/unit/runtime/http/test_servers.py"

Wording = Callable[[str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --update-messages."""
    parser.addoption("--update-messages", action="store_true", help=f"write {MESSAGES.name} anew")


def pytest_configure(config: pytest.Config) -> None:
    """Read the pinned messages once per process; let `muster` print the trace of a bug."""
    gc.disable()  # until all tests are collected
    os.environ["MUSTER_TRACEBACK"] = "1"
    pinned: dict[str, list[str]] = yaml_files.load(MESSAGES.read_text()) if MESSAGES.exists() else {}
    config.stash[_EXPECTED] = pinned or {}
    config.stash[_SEEN] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whole folders, and begin with the module that mostly waits, so that others run meanwhile."""
    for item in items:
        if item.nodeid.startswith(_THOROUGH):
            item.add_marker(pytest.mark.thorough)
    items.sort(key=lambda item: not item.nodeid.startswith(_WAITS))


def pytest_collection_finish() -> None:
    """Collect no garbage among imported modules and collected tests; that takes a tenth of the run."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the messages of this run; keep those of test files that did not run and still exist."""
    seen = config.stash.get(_SEEN, {})
    if not config.getoption("--update-messages") or not seen:
        return
    run = {_file(test) for test in seen}
    kept = {
        test: texts
        for test, texts in config.stash[_EXPECTED].items()
        if _file(test) not in run and (config.rootpath / _file(test)).exists()
    }
    text = yaml.safe_dump(kept | seen, width=10_000, allow_unicode=True, sort_keys=True)
    MESSAGES.write_text(f"# Written by `make golden-update`: what each test saw, by the test's id.\n{text}")


@pytest.fixture
def wording(request: pytest.FixtureRequest) -> Wording:
    """Return a function that compares a text with the one pinned for this call of this test."""
    test, config = request.node.nodeid, request.config
    seen: list[str] = []
    expected = config.stash[_EXPECTED].get(test, [])
    updating = config.getoption("--update-messages")

    def check(text: Any) -> None:
        seen.append(str(text))
        config.stash[_SEEN][test] = seen
        if updating:
            return
        position = len(seen) - 1
        assert position < len(expected), f"not pinned yet, run `make golden-update`: {text}"
        assert str(text) == expected[position]

    return check


def _file(test: str) -> str:
    return test.partition("::")[0]
