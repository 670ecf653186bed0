"""How the tests of this folder are collected."""

from __future__ import annotations

import pytest

NET = (
    "tests/replays/",
    "tests/stories/",
    "tests/faults/",
    "tests/contract/",
    "tests/manifests/",
    "tests/e2e/",
)
"""Folders of tests that must not change unless a change of behaviour is meant: see README.md beside this."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the net."""
    for item in items:
        if item.nodeid.startswith(NET):
            item.add_marker(pytest.mark.net)
