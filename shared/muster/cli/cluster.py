"""Connect a command to the cluster of a kubeconfig, and print tables as kubectl does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from muster.cli.arguments import BadInput
from muster.cli.output import CommandError
from muster.cluster.client import Client
from muster.cluster.errors import ClusterError
from muster.objects.text import printable


def kubeconfig_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option --kubeconfig to a command."""
    return click.option(
        "--kubeconfig",
        envvar="KUBECONFIG",
        type=click.Path(path_type=Path),
        help="Kubeconfig of the cluster; default: $KUBECONFIG, else ~/.kube/config.",
    )(command)


@contextmanager
def connected(kubeconfig: Path | None, command: str) -> Iterator[Client]:
    """Yield a client of the cluster; a ClusterError within the block becomes a one-line message.

    Raises:
        BadInput: the kubeconfig does not exist or is invalid.
        CommandError: the API server refused a request, or did not answer.
    """
    path = kubeconfig or Path.home() / ".kube" / "config"
    if not path.is_file():
        raise BadInput(f"{path}: No such file; set --kubeconfig or $KUBECONFIG")
    try:
        client = Client.from_kubeconfig(str(path), user_agent=f"muster-{command}")
    except Exception as error:  # noqa: BLE001 - the kubernetes package raises any kind of error for an invalid kubeconfig
        raise BadInput(f"{path}: {error}") from None
    try:
        yield client
    except ClusterError as error:
        raise CommandError(f"{client.url}: {type(error).__name__}: {error.message}") from None


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text in aligned columns, as kubectl prints them; no cell is truncated.

    Control characters are escaped, so that no cell continues in the next line.
    """
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headers, *rows)
    )
