"""The records of several processes are joined."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.support.rights import Right, Rights
from tests.e2e.support.seen import Seen, forget, recall
from tests.e2e.support.whole_run import WholeRun

GET, PATCH = Right("patch-pods", "get", "pods"), Right("patch-pods", "patch", "pods", "team-a")
FILES = {Path("test_jobs.py"), Path("test_trees.py")}


def test_the_records_of_all_processes_are_joined(tmp_path: Path) -> None:
    """A permission may be granted on one cluster and used on another."""
    first = Seen(Rights({GET, PATCH}, {GET}, {"a"}, {PATCH}), WholeRun(FILES, {"left out"}, {"failed"}))
    second = Seen(Rights({GET}, {PATCH}, {"b"}, set()), WholeRun(FILES, {"left out"}, {"failed too"}))
    first.keep("gw0", tmp_path)
    second.keep("gw1", tmp_path)
    assert recall(tmp_path) == Seen(
        Rights({GET, PATCH}, {GET, PATCH}, {"a", "b"}, {PATCH}),
        WholeRun(FILES, {"left out"}, {"failed", "failed too"}),
    )


def test_a_new_run_removes_the_records_of_the_previous_one(tmp_path: Path) -> None:
    """Otherwise a story that did not run today would count."""
    Seen(Rights({GET}, {GET})).keep("gw7", tmp_path)
    forget(tmp_path)
    assert recall(tmp_path) == Seen()
