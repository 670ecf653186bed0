"""Print what people read: cluster objects and events may contain text that a terminal would obey."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from muster.objects.text import printable

_PROGRESS_FROM = 50
"""From this number of deliveries or jobs on, a command takes seconds and shows its progress."""


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines on standard output, or standard error with `err`; other control characters are escaped."""
    lines = "\n".join(map(printable, text.split("\n")))
    click.echo(lines, err=err, nl=nl)  # noqa: TID251 - the one place that prints


@contextmanager
def progress(length: int, label: str, *, hidden: bool = False) -> Iterator[Callable[[], None]]:
    """Show a progress bar for long work if standard error is a terminal; yield what advances it by one."""
    hidden = hidden or length < _PROGRESS_FROM or not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=hidden) as bar:
        yield lambda: bar.update(1)


class CommandError(click.ClickException):  # noqa: TID251 - `main` escapes its message
    """A command failed: `muster: MESSAGE` on standard error and exit status 1."""
