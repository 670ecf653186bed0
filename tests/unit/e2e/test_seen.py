"""What several processes saw of a run of stories is one again."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.support.rights import Right, Rights
from tests.e2e.support.seen import Seen, forget, recall
from tests.e2e.support.whole_run import WholeRun

GET, PATCH = Right("patch-pods", "get", "pods"), Right("patch-pods", "patch", "pods", "team-a")
FILES = {Path("test_jobs.py"), Path("test_trees.py")}


def test_what_each_process_saw_is_put_together(tmp_path: Path) -> None:
    """A right that one cluster granted may be used on another."""
    one = Seen(Rights({GET, PATCH}, {GET}, {"a"}, {PATCH}), WholeRun(FILES, {"left out"}, {"failed"}))
    other = Seen(Rights({GET}, {PATCH}, {"b"}, set()), WholeRun(FILES, {"left out"}, {"failed too"}))
    one.keep("gw0", tmp_path)
    other.keep("gw1", tmp_path)
    assert recall(tmp_path) == Seen(
        Rights({GET, PATCH}, {GET, PATCH}, {"a", "b"}, {PATCH}),
        WholeRun(FILES, {"left out"}, {"failed", "failed too"}),
    )


def test_a_new_run_forgets_the_one_before(tmp_path: Path) -> None:
    """Else a story that nobody told today would count."""
    Seen(Rights({GET}, {GET})).keep("gw7", tmp_path)
    forget(tmp_path)
    assert recall(tmp_path) == Seen()
