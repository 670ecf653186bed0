"""How the tests of this folder are collected and run."""

from __future__ import annotations

import gc

import pytest

_THOROUGH = ("tests/stories/", "tests/faults/")


def pytest_configure() -> None:
    """Let `muster` print the trace of a bug."""
    gc.disable()  # until all tests are collected


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark whole folders."""
    for item in items:
        if item.nodeid.startswith(_THOROUGH):
            item.add_marker(pytest.mark.thorough)


def pytest_collection_finish() -> None:
    """Collect no garbage among imported modules and collected tests; that takes a tenth of the run."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()
