"""Regular expressions of CustomResourceDefinitions and failure policies, as Go reads them."""

from __future__ import annotations

import pytest

from muster.simulator.patterns import PatternError, has_match
from tests.support import cpu


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        (r"^\pL+\z", "Größe", True),
        ("a$", "a\n", False),
        ("^b", "a\nb", False),
        ("", "", True),
        ("😀", "a😀b", True),
    ],
)
def test_matches(pattern: str, text: str, expected: bool) -> None:
    """A pattern may match any part; `^` and `$` stand for the ends of the whole text."""
    assert has_match(pattern, text) is expected


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", r"(a)\1", "a{2000}"])
def test_what_go_cannot_read(pattern: str) -> None:
    """Open parentheses, and what RE2 leaves out: lookahead, backreferences, many repetitions."""
    with pytest.raises(PatternError, match=r"^[^(].+: "):
        has_match(pattern, "ab")


def test_time_is_linear() -> None:
    """Nested repetitions, of which `re` tries 2^40 ways, take milliseconds."""
    with cpu.at_most(1):
        assert not has_match("^(a+)+$", "a" * 40 + "!")
