"""Reading an audit log while the API server writes to it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cluster import audit

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

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
    """Each event is returned once; events that are not wholly in range are left out."""
    log = tmp_path / "audit.jsonl"
    log.write_bytes(written)
    assert [event["n"] for event in audit.events_since(log, offset)] == seen


@pytest.mark.parametrize("offset", [0, 12])
def test_a_line_that_is_completed_meanwhile_is_not_returned_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    """A line that is completed between two reads is not returned."""
    log = tmp_path / "audit.jsonl"
    log.write_bytes(LINES)
    parts = [LINES[max(offset - 1, 0) : 14], b"", LINES[14:]]
    monkeypatch.setattr(Path, "open", lambda *_: io.BufferedReader(GrowingLog(parts)))
    assert [event["n"] for event in audit.events_since(log, offset)] == ([] if offset else [1])


class GrowingLog(io.RawIOBase):
    """A file that returns one more part at each read."""

    def __init__(self, parts: Sequence[bytes]) -> None:
        super().__init__()
        self._parts = list(parts)

    def readable(self) -> bool:
        """Return True: the file can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: the reader may seek."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Return the offset; the parts begin there."""
        del whence
        return offset

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read the next part; an empty one is the end of the file for now."""
        part = self._parts.pop(0) if self._parts else b""
        memoryview(buffer)[: len(part)] = part
        return len(part)


def test_a_log_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    """The API server creates the log with its first event."""
    log = tmp_path / "audit.jsonl"
    assert (audit.size(log), audit.events_since(log)) == (0, [])
