"""Reading files that a person names."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from muster.replay import files


def test_a_file_may_not_unpack_to_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may unpack to a thousand times its size; of two members, as `cat` makes them, both count."""
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress(b"x" * 600) + gzip.compress(b"x" * 400))
    assert files.read_text(path) == "x" * 1000
    path.write_bytes(gzip.compress(b"x" * 600) + gzip.compress(b"x" * 401))
    with pytest.raises(files.BadFileError, match="has more than 1000 bytes"):
        files.read_text(path)


def test_a_device_that_never_ends_is_read_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a file that is too large."""
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    with pytest.raises(files.BadFileError, match="has more than 1000 bytes"):
        files.read_text(Path("/dev/zero"))


def test_no_symbolic_link_is_overwritten(tmp_path: Path) -> None:
    """In a folder that others can write to it may lead to any file of the user."""
    victim, link = tmp_path / "victim", tmp_path / "out.jsonl"
    victim.write_text("mine")
    link.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        files.AppendedFile(link, overwrite=True)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("text", ["[" + "[]," * 600_000 + "[]]", "{" * 600_000])
def test_a_line_of_too_many_values_is_refused_before_it_is_parsed(text: str) -> None:
    """Each value takes up to 300 bytes of memory: a packed file of some kilobytes would take gigabytes."""
    with pytest.raises(files.BadFileError, match=r"^events.jsonl:1: is not JSON: it has more than 500000"):
        list(files.json_lines(Path("events.jsonl"), text))


def test_characters_of_strings_are_no_values() -> None:
    """An annotation may have a list of indexes."""
    text = '{"annotations": "' + "1,[{" * 300_000 + '"}'
    ((_, value),) = files.json_lines(Path("events.jsonl"), text)
    assert value["annotations"].count("{") == 300_000
