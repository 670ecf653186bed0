"""How the commands that work on a cluster are told which one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from muster.cli.bad_input import BadInput
from muster.cluster.client import Client
from muster.cluster.errors import ClusterError


def kubeconfig_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option --kubeconfig."""
    return click.option(
        "--kubeconfig",
        envvar="KUBECONFIG",
        type=click.Path(path_type=Path),
        help="Of the cluster; $KUBECONFIG where none is named, else ~/.kube/config.",
    )(command)


@contextmanager
def connected(kubeconfig: Path | None, command: str) -> Iterator[Client]:
    """A client of the cluster; whatever it refuses later is told in one line.

    Raises:
        BadInput: there is no such file, or it is none that could be used.
        click.ClickException: the API server refused something, or did not answer.
    """
    path = kubeconfig or Path.home() / ".kube" / "config"
    if not path.is_file():
        raise BadInput(f"{path}: No such file; name one by --kubeconfig or $KUBECONFIG")
    try:
        client = Client.from_kubeconfig(str(path), user_agent=f"muster-{command}")
    except Exception as error:  # noqa: BLE001 - the kubernetes package raises whatever its YAML makes of a file
        raise BadInput(f"{path}: {error}") from None
    try:
        yield client
    except ClusterError as error:
        raise click.ClickException(f"{client.url}: {type(error).__name__}: {error.message}") from None


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Text in columns, as kubectl prints it: none is cut, and the last may be as long as it likes."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    )
