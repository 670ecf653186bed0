"""docs/cli.md has every command and option, in the words of the commands themselves."""

from __future__ import annotations

from tests.docs.cli_reference import PAGE, page


def test_the_page_equals_the_help_of_the_commands() -> None:
    """`make golden-update` writes it anew."""
    assert PAGE.read_text() == page()
