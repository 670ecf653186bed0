"""`muster check`: check a cluster, the installation of Muster, or whether it can be uninstalled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.output import echo_items, output_option
from muster.cluster.http.client import Client
from muster.cluster.versioned import Versioned
from muster.operator.check import Finding, Level, check_cluster, check_installation
from muster.operator.uninstall import check_uninstall


@click.command("check")
@click.option("--before", is_flag=True, help="Check only the cluster, before Muster is installed.")
@click.option("--uninstall", is_flag=True, help="Check only whether Muster can be uninstalled.")
@click.option(
    "-n",
    "--namespace",
    default="",
    help="Namespace for dry runs of a pod and a Job; default: the context's.",
)
@output_option("text", "json", "yaml")
@cluster_options
def command(
    namespace: str, output: str, options: KubeconfigOptions, *, before: bool, uninstall: bool
) -> None:
    """Check whether a cluster has what Muster needs, and whether its admission policies are installed.

    A pod and a Job are created as a dry run, to see which fields the API server keeps; nothing is stored.
    Whether all objects are as in eventing/, `kubectl diff -k` shows; what an account may do, `kubectl auth
    can-i --list --as=system:serviceaccount:muster-system:NAME`.

    Exits with 1 if a check fails.
    """
    found: list[Finding] = []
    with connected(options, "check") as cluster:
        namespace = namespace or cluster.namespace
        cluster.require_namespace(namespace)
        for finding in _findings(cluster.client, namespace, before=before, uninstall=uninstall):
            found.append(finding)
            if output == "text":
                click.echo(f"{finding.level:<4}  {finding.about}: {finding.message}")
    if output != "text":
        echo_items(map(asdict, found), output)
    if any(finding.level is Level.FAIL for finding in found):
        raise SystemExit(1)


def _findings(client: Client, namespace: str, *, before: bool, uninstall: bool) -> Iterator[Finding]:
    if uninstall:
        yield from check_uninstall(Versioned(client))
        return
    yield from check_cluster(client, namespace)
    if not before:
        yield from check_installation(client)
