"""Print results of commands as data or as a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import click
import yaml


class CommandError(click.ClickException):
    """A command failed: `muster: MESSAGE` on standard error and exit status 1."""


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
