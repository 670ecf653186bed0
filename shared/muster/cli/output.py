"""Print results of commands as data or as a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
import yaml


class CommandError(click.ClickException):
    """A command failed: `muster: MESSAGE` on standard error and exit status 1."""


def output_option(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option -o with these formats; the first is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="Format."
    )


def echo_data(data: Any, output: str) -> None:
    """Print plain data as `json` or `yaml`."""
    text = json.dumps(data, indent=2)
    if output == "yaml":
        text = yaml.safe_dump(json.loads(text), sort_keys=False, width=110).rstrip("\n")
    click.echo(text)


def echo_items(items: Iterable[Any], output: str) -> None:
    """Print a list as `echo_data` does."""
    echo_data(list(items), output)


def echo_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in aligned columns, as kubectl does; line breaks in a cell become spaces."""
    cells = [headers, *([" ".join(cell.split()) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        click.echo("  ".join(map(str.ljust, row, widths)).rstrip())
