"""Reading an audit log while it is being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import audit

LINES = b'{"n": 1}\n{"n": 2}\n{"n": 3}\n'


@pytest.mark.parametrize(
    ("written", "offset", "seen"),
    [
        pytest.param(LINES, 0, [1, 2, 3], id="all of it"),
        pytest.param(LINES, 9, [2, 3], id="from the beginning of a line on"),
        pytest.param(LINES, 12, [3], id="a line that was half written then is left out"),
        pytest.param(LINES[:-3], 0, [1, 2], id="and so is one that is half written now"),
        pytest.param(LINES, len(LINES), [], id="nothing was written since"),
    ],
)
def test_whole_lines_are_read(tmp_path: Path, written: bytes, offset: int, seen: list[int]) -> None:
    """No event is read twice, none in part."""
    log = tmp_path / "audit.jsonl"
    log.write_bytes(written)
    assert [event["n"] for event in audit.events_since(log, offset)] == seen


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    """The API server makes it with its first event."""
    log = tmp_path / "audit.jsonl"
    assert (audit.size(log), audit.events_since(log)) == (0, [])
