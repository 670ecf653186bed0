"""Arguments, results and errors that commands have in common."""

from __future__ import annotations

import json
import shutil
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
import yaml

from muster.objects.meta import read_time
from muster.replay.files import BadFileError

STDIN = "-"


class CommandError(click.ClickException):
    """A command failed: `muster: MESSAGE` on standard error and exit status 1."""


class BadInput(CommandError):
    """An argument or file is invalid: `muster: MESSAGE` on standard error and exit status 2."""

    exit_code = 2


@contextmanager
def errors_as_bad_input() -> Iterator[None]:
    """Turn BadFileError and LookupError into BadInput."""
    try:
        yield
    except (BadFileError, LookupError) as error:
        raise BadInput(str(error.args[0])) from None


def path_of(target: str) -> Path:
    """Return the path of a file that was typed; that of standard input for `-`."""
    return Path("/dev/stdin" if target == STDIN else target)


def interrupt_by_signals() -> None:
    """Have SIGTERM end a command as Ctrl-C does, also one that a shell started in the background."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def output_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option -o to a command, which gets it as the argument `output`."""
    formats = click.Choice(["text", "json", "yaml"])
    return click.option("-o", "--output", type=formats, default="text", show_default=True, help="Format.")(
        command
    )


def echo_data(data: Any, output: str) -> None:
    """Print plain data as `json` or `yaml`."""
    text = json.dumps(data, indent=2)
    if output == "yaml":
        text = yaml.safe_dump(json.loads(text), sort_keys=False, width=110).rstrip("\n")
    click.echo(text)


def echo_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in aligned columns, as kubectl does; line breaks in a cell become spaces."""
    cells = [headers, *([" ".join(cell.split()) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        click.echo("  ".join(map(str.ljust, row, widths)).rstrip())


def age(since: str, now: datetime) -> str:
    """Return the time since `since` in its largest unit, `3d` or `12m`; "-" if unknown."""
    began = read_time(since)
    if began is None:
        return "-"
    seconds = max(now - began, timedelta()) // timedelta(seconds=1)
    sizes = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
    return next((f"{seconds // size}{unit}" for unit, size in sizes if seconds >= size), "0s")


def echo_wrapped(text: str) -> None:
    """Print lines, wrapped at words to the width of a terminal; in a file or a pipe each stays whole."""
    if sys.stdout.isatty():
        wrapper = textwrap.TextWrapper(shutil.get_terminal_size().columns, subsequent_indent=" " * 6)
        wrapper.break_on_hyphens = wrapper.break_long_words = False  # names stay whole
        text = "".join(f"{wrapper.fill(line)}\n" for line in text.splitlines())
    click.echo(text, nl=False)
