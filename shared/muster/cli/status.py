"""`muster status`: list what waits or runs without a gang, since when, and why."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import click

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.common import BadInput, echo_data, echo_table, output_option
from muster.cluster.versioned import Versioned
from muster.objects.meta import read_time
from muster.operator.status import ClusterStatus, State, read_status

HEADS = {State.WAITING: "WAITS", State.NO_GANG: "RUNS WITHOUT GANG"}
"""The heading of the objects of a state; each state has a table of its own."""


@click.command("status")
@click.option("-n", "--namespace", default="", help="Only this namespace; default: the context's.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
@output_option
@cluster_options
def command(namespace: str, output: str, options: KubeconfigOptions, *, everywhere: bool) -> None:
    """List what waits for a PodGroup or for room, and what runs without a gang, since when, and why.

    Looks at the conditions that Muster writes on TrainJobs, JobSets and Jobs, at fallback PodGroups, and at
    pods that are held by Muster's gate or belong to a PodGroup that does not exist. Nothing is written.

    Exits with 1 if a kind could not be listed, so that nothing is known of it.
    """
    if everywhere and namespace:
        raise BadInput("-A: cannot be used with -n")
    with connected(options, "status") as cluster:
        place = "" if everywhere else namespace or cluster.namespace
        if place:
            cluster.require_namespace(place)
        status = read_status(Versioned(cluster.client), place)
    if output == "text":
        _print(status, place)
    else:
        echo_data([asdict(item) for item in status.items], output)
    for kind, message in status.not_read.items():
        click.echo(f"muster: {kind} could not be read: {message}", err=True)
    if status.not_read:
        raise SystemExit(1)


def _print(status: ClusterStatus, namespace: str) -> None:
    now = datetime.now(UTC)  # noqa: TID251 - a command uses the real time
    shown = [state for state in State if any(item.state is state for item in status.items)]
    for state in shown:
        if state is not shown[0]:
            click.echo()
        rows = [
            (item.namespace, item.what, _age(item.since, now), item.reason, item.message)
            for item in status.items
            if item.state is state
        ]
        echo_table(("NAMESPACE", HEADS[state], "FOR", "REASON", "MESSAGE"), rows)
    if not (status.items or status.not_read):
        place = f"in namespace {namespace}; -A looks at all" if namespace else "in any namespace"
        click.echo(f"nothing is waiting {place}")


def _age(since: str, now: datetime) -> str:
    """Return the time since `since` in its two largest units, `3d4h` or `12m`; "-" if unknown."""
    began = read_time(since)
    if began is None:
        return "-"
    seconds = max(now - began, timedelta()) // timedelta(seconds=1)
    parts = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"
