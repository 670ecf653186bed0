"""Print what people read: cluster objects and events may contain text that a terminal would obey."""

from __future__ import annotations

from typing import IO, Any

import click

from muster.objects.text import printable


def echo(text: str, *, err: bool = False, nl: bool = True, file: IO[Any] | None = None) -> None:
    """Print lines on standard output, or standard error with `err`; other control characters are escaped."""
    lines = "\n".join(map(printable, text.split("\n")))
    click.echo(lines, err=err, nl=nl, file=file)  # noqa: TID251 - the one place that prints


class CommandError(click.ClickException):  # noqa: TID251 - its message is escaped
    """A command failed: one line on standard error and exit status 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message on standard error."""
        echo(f"Error: {self.message}", file=file, err=file is None)
