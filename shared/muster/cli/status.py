"""`muster status`: what waits, since when, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from muster.cli.cluster_option import connected, kubeconfig_option, table
from muster.cluster.versioned import Versioned
from muster.operator.status import Waiting, waiting

HEADS = ("NAMESPACE", "WAITS", "FOR", "REASON", "MESSAGE")


@click.command("status")
@click.option("-n", "--namespace", default="", help="Only there; every namespace where none is named.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@kubeconfig_option
def command(namespace: str, output: str, kubeconfig: Path | None) -> None:
    """Tell what waits for a group or a place, since when, and why.

    Looks at the conditions that Muster writes on TrainJobs, JobSets and Jobs, at stand-ins, and at pods that
    are held by Muster's gate or belong to a PodGroup that does not exist. Nothing is written.
    """
    with connected(kubeconfig, "status") as client:
        found = waiting(Versioned(client), namespace)
    if output == "json":
        click.echo(json.dumps([asdict(one) for one in found], indent=2))
    elif found:
        click.echo(table(HEADS, _rows(found, datetime.now(UTC))))  # noqa: TID251 - a command has the time
    else:
        click.echo("nothing waits")


def _rows(found: Sequence[Waiting], now: datetime) -> list[tuple[str, ...]]:
    return [
        (one.namespace, one.what, _age(one.since, now), one.reason, " ".join(one.message.split()))
        for one in found
    ]


def _age(since: str, now: datetime) -> str:
    """How long ago, in the two largest units: `3d4h`, `12m`."""
    if not since:
        return "-"
    seconds = max(now - datetime.fromisoformat(since), timedelta()) // timedelta(seconds=1)
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"
