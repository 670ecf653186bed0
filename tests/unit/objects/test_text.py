"""Text that people read has nothing that a terminal would obey; the levels of JSON are counted."""

from __future__ import annotations

import json
import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.objects.text import brackets_of, has_more_values, is_deeper, printable, structure_of
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


@pytest.mark.thorough
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
    brackets = brackets_of(structure_of(text.encode(), len(text)))
    assert levels == 0 or is_deeper(brackets, levels - 1)
    assert not is_deeper(brackets, levels)


def test_deep_lists_take_linear_time() -> None:
    """One pass for each of a hundred levels took 18 ms: 195 a second kept probes from being answered."""
    combs = b"[" + b",".join([b"[" * 97 + b"]" * 97] * 2500) + b"]"
    with cpu.at_most(0.2):
        assert not is_deeper(brackets_of(structure_of(combs, len(combs))), 100)


JSON = st.recursive(
    st.none() | st.integers() | st.text(alphabet='[]{},"\\\\\n:é'),
    lambda values: (
        st.lists(values, min_size=1) | st.dictionaries(st.text(alphabet='[]{},"\\\\'), values, min_size=1)
    ),
)


def values_of(value: object) -> int:
    """The number of values of a JSON text without empty lists and objects, without the names of members."""
    match value:
        case dict():
            return 1 + sum(map(values_of, value.values()))
        case list():
            return 1 + sum(map(values_of, value))
    return 1


@pytest.mark.thorough
@given(JSON, st.booleans(), st.sampled_from([None, 1]))
def test_values_are_counted_outside_of_strings(value: object, ascii_only: bool, indent: int | None) -> None:
    """Whatever the strings have: brackets, commas, quotes and backslashes."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert has_more_values(text, values_of(value) - 1)
    assert not has_more_values(text, values_of(value))


@pytest.mark.parametrize("marks", [b'[","],', b'"[",', b'",",', b'{"\\\\":"\\"["},', b',",[",'])
def test_values_of_a_long_text_are_counted_across_pieces(marks: bytes) -> None:
    """A piece may end within a string."""
    text, values = (
        b"[" + marks * 100_000 + b"0]",
        1 + len(re.sub(rb'"(?:\\.|[^"])*"|[^[{,]', b"", marks)) * 100_000,
    )
    assert has_more_values(text, values)
    assert not has_more_values(text, values + 1)


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b",".join([b'""'] * 100_100) + b"]",
        b'{"":"' + b"," * 100 + b'",' + b",".join([b'"":""'] * 99_960) + b"}",
        b"[" + b",".join([b'"["'] * 100_100) + b"]",
    ],
)
def test_many_strings_take_as_long_as_other_values(text: bytes) -> None:
    """One match for each took 0.1 to 0.4 s: twenty such events a second kept others from being parsed."""
    with cpu.at_most(0.05):
        has_more_values(text, 100_000)
