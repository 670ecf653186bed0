"""`muster check`: check a cluster, the installation of Muster, or whether it can be uninstalled."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from muster.cli.arguments import BadInput, load_installed
from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.output import echo_items, echo_line, output_option, reading_shown, step_shown
from muster.cluster.http.client import Client
from muster.cluster.versioned import Versioned
from muster.operator.check import (
    Finding,
    Level,
    check_cluster,
    check_installation,
    check_policies,
    check_uninstall,
    policy_namespace,
)
from muster.simulator.overlays import CLUSTER, Manifest


@click.command("check")
@click.option("--before", is_flag=True, help="Check only the cluster, before Muster is installed.")
@click.option("--uninstall", is_flag=True, help="Check only whether Muster can be uninstalled.")
@click.option(
    "--overlay",
    type=click.Path(path_type=Path),
    default=CLUSTER,
    help="What was installed: a kustomize folder, a manifest, or - for standard input; default: "
    "Muster's own overlay.",
)
@click.option(
    "-n",
    "--namespace",
    default="",
    help="Namespace for dry runs of a pod and a Job; default: the context's.",
)
@output_option("text", "json", "yaml")
@cluster_options
def command(
    overlay: Path, namespace: str, output: str, options: KubeconfigOptions, *, before: bool, uninstall: bool
) -> None:
    """Check whether a cluster has what Muster needs, and whether Muster is installed correctly.

    A pod and a Job are created as a dry run, to see which fields the API server keeps; nothing is stored.
    Permissions of the functions are checked by SubjectAccessReview, which needs the right to create those.

    Exits with 1 if a check fails.
    """
    with reading_shown(overlay):
        installed = [] if before or uninstall else load_installed(overlay)
    found: list[Finding] = []
    with connected(options, "check") as cluster:
        namespace = namespace or cluster.namespace
        cluster.require_namespace(namespace)
        findings = _findings(cluster.client, installed, namespace, uninstall=uninstall)
        checked = findings if overlay == CLUSTER else _of_ones_own(findings, overlay)
        for finding in _shown(checked):
            found.append(finding)
            if output == "text":
                echo_line(f"{finding.level:<4}  {finding.about}: {finding.message}")
    if output != "text":
        echo_items([{**asdict(finding), "level": str(finding.level)} for finding in found], output)
    if any(finding.level is Level.FAIL for finding in found):
        raise SystemExit(1)


def _shown(findings: Iterator[Finding]) -> Iterator[Finding]:
    """Yield findings; show on a terminal that the next one takes long."""
    with step_shown("checking") as show:
        show("the cluster")
        for finding in findings:
            show("")
            yield finding
            show("the cluster")


def _of_ones_own(findings: Iterator[Finding], overlay: Path) -> Iterator[Finding]:
    """Yield findings; an object of a user's own overlay that lacks a field is bad input and no bug."""
    try:
        yield from findings
    except (AttributeError, KeyError, TypeError) as error:
        raise BadInput(f"{overlay}: an object has no valid {error}") from None


def _findings(
    client: Client, installed: list[Manifest], namespace: str, *, uninstall: bool
) -> Iterator[Finding]:
    if uninstall:
        yield from check_uninstall(Versioned(client))
        return
    yield from check_cluster(client, namespace)
    if installed:
        yield from check_installation(client, installed, datetime.now(UTC))  # noqa: TID251 - a command uses the real time
        yield from check_policies(client, policy_namespace(installed))
