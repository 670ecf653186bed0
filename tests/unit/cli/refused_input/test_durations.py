"""Times on the command line, as Go and kubectl write them."""

from __future__ import annotations

import click
import pytest

from muster.cli.arguments import Duration
from tests.unit.cli.conftest import Filed, Muster


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("0.5", 0.5), ("30s", 30), ("2m", 120), ("1h30m", 5400), ("500ms", 0.5), ("1.5m", 90)],
)
def test_a_time_in_seconds(text: str, seconds: float) -> None:
    """With units, or in seconds."""
    assert Duration().convert(text, None, None) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "0", "0s", "-1s", "2 m", "m", "2x", "1h-5m", "inf", "nan", "1e3"])
def test_invalid_durations_are_refused(text: str) -> None:
    """Nor is none at all."""
    with pytest.raises(click.BadParameter):
        Duration().convert(text, None, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ["record", "e.jsonl", "--for", "soon"],
        ["record", "e.jsonl", "--every", "0"],
        ["replay", "FILE", "--to", "http://127.0.0.1:1", "--for", "2 minutes"],
    ],
)
def test_the_option_is_named(muster: Muster, filed: Filed, arguments: list[str]) -> None:
    """One line with examples, exit status 2."""
    result = muster(*(filed("e.json", "") if word == "FILE" else word for word in arguments))
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
