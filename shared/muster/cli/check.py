"""`muster check`: check a cluster, the installation of Muster, or whether it can be uninstalled."""

from __future__ import annotations

from dataclasses import asdict

import click

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.common import echo_data, output_option
from muster.cluster.versioned import Versioned
from muster.operator.check import Level, check_cluster, check_installation, check_uninstall


@click.command("check")
@click.option("--before", is_flag=True, help="Check only the cluster, before Muster is installed.")
@click.option("--uninstall", is_flag=True, help="Check only whether Muster can be uninstalled.")
@click.option(
    "-n",
    "--namespace",
    default="",
    help="Namespace for dry runs of a pod and a Job; default: the context's.",
)
@output_option
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
    with connected(options, "check") as cluster:
        namespace = namespace or cluster.namespace
        cluster.require_namespace(namespace)
        if uninstall:
            found = list(check_uninstall(Versioned(cluster.client)))
        else:
            found = list(check_cluster(cluster.client, namespace))
            found += [] if before else check_installation(cluster.client)
    if output == "text":
        for finding in found:
            click.echo(f"{finding.level:<4}  {finding.about}: {finding.message}")
    else:
        echo_data([asdict(finding) for finding in found], output)
    if any(finding.level is Level.FAIL for finding in found):
        raise SystemExit(1)
