"""`muster status`: list what waits, since when, and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from muster.cli.cluster import ClusterOptions, cluster_options, connected, table
from muster.cli.output import echo
from muster.cluster.versioned import Versioned
from muster.operator.status import Waiting, waiting

HEADERS = ("NAMESPACE", "WAITS", "FOR", "REASON", "MESSAGE")


@click.command("status")
@click.option("-n", "--namespace", default="", help="Only this namespace; default: all.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@cluster_options
def command(namespace: str, output: str, options: ClusterOptions) -> None:
    """List what waits for a PodGroup or for room, since when, and why.

    Looks at the conditions that Muster writes on TrainJobs, JobSets and Jobs, at fallback PodGroups, and at
    pods that are held by Muster's gate or belong to a PodGroup that does not exist. Nothing is written.
    """
    with connected(options, "status") as cluster:
        if namespace:
            cluster.require_namespace(namespace)
        items = waiting(Versioned(cluster.client), namespace)
    if output == "json":
        echo(json.dumps([asdict(item) for item in items], indent=2))
    elif items:
        echo(table(HEADERS, _rows(items, datetime.now(UTC))))  # noqa: TID251 - a command uses the real time
    else:
        echo("nothing is waiting")


def _rows(items: Sequence[Waiting], now: datetime) -> list[tuple[str, ...]]:
    return [
        (item.namespace, item.what, _age(item.since, now), item.reason, " ".join(item.message.split()))
        for item in items
    ]


def _age(since: str, now: datetime) -> str:
    """Return the time since `since` in its two largest units, `3d4h` or `12m`; "-" if unknown."""
    if not since:
        return "-"
    seconds = max(now - datetime.fromisoformat(since), timedelta()) // timedelta(seconds=1)
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"
