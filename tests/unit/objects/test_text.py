"""Text that people read has nothing that a terminal would obey; the levels of JSON are counted."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.objects.text import brackets_of, is_deeper, printable
from tests.support import cpu


@given(st.text())
def test_printed_text_has_no_control_character(text: str) -> None:
    """Neither C0 nor C1, no line separators, no half characters; what a person wrote stays as it is."""
    shown = printable(text)
    shown.encode()
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)
    assert len(shown.splitlines()) <= 1
    if text.isprintable():
        assert shown == text


def test_control_characters_are_named() -> None:
    """A reader sees what was there."""
    assert printable("a\x1b[31mb\nc\u202ed\x9b") == r"a\x1b[31mb\nc\u202ed\x9b"


def test_no_more_than_the_limit_is_looked_at() -> None:
    """A pod's condition may have 250 KB of control characters, and a gang has many pods."""
    with cpu.at_most(0.5):
        assert printable("\x1b" * 10_000_000, 10) == r"\x1b\x1b\x"


def test_a_long_text_takes_little_more_memory_than_what_is_shown() -> None:
    """Each escaped character is a text of its own for a moment: 60 MB of them took 4.7 GiB."""
    tracemalloc.start()
    shown = printable("\x7f" * 150_000)
    assert tracemalloc.get_traced_memory()[1] < 7_000_000
    tracemalloc.stop()
    assert shown == r"\x7f" * 150_000


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("1", 0),
        ("[]", 1),
        ('{"a": [1, {}], "b": []}', 3),
        ('["][", "\\"]]", [[1]]]', 3),
        ('["]", ["]", ["]", "["], "["], "["]', 3),
        ('["\\\\", [{"[[[[": "]"}]]', 3),
        ("[" + "[[]]," * 5000 + "[]]", 3),
        ("[" + ",".join(["[" * 97 + "]" * 97] * 250) + "]", 98),
        ("[" * 99 + "]" * 99, 99),
    ],
)
def test_levels_of_json_are_counted_outside_of_strings(text: str, levels: int) -> None:
    """A bracket in a string is none, also after an escaped quote."""
    json.loads(text)
    assert levels == 0 or is_deeper(brackets_of(text.encode()), levels - 1)
    assert not is_deeper(brackets_of(text.encode()), levels)


def test_deep_lists_take_linear_time() -> None:
    """One pass for each of a hundred levels took 18 ms: 195 a second kept probes from being answered."""
    combs = b"[" + b",".join([b"[" * 97 + b"]" * 97] * 2500) + b"]"
    with cpu.at_most(0.2):
        assert not is_deeper(brackets_of(combs), 100)
