"""`muster explain`: explain how an owner is grouped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from muster.cli.arguments import BadInput, errors_as_bad_input
from muster.cli.output import echo, progress
from muster.cluster.client import Client
from muster.cluster.errors import ClusterError
from muster.cluster.versioned import Versioned
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.operator.explain import Explanation, as_mermaid, as_text, explain
from muster.operator.explain.assumptions import DryRunCluster, assume_cluster
from muster.policy.owners import KINDS
from muster.replay.snapshots import first, read_snapshots

_KINDS = {
    name: kind.resource for kind in KINDS for name in (kind.resource.kind.lower(), kind.resource.plural)
}


@click.command("explain")
@click.argument("target", metavar="KIND/NAME|FILE")
@click.option("-n", "--namespace", default="default", help="Namespace of the owner in a cluster.")
@click.option(
    "--kubeconfig",
    envvar="KUBECONFIG",
    type=click.Path(path_type=Path),
    help="Kubeconfig of the cluster; default: $KUBECONFIG.",
)
@click.option("--mermaid", is_flag=True, help="Print a Mermaid flowchart instead of text.")
def command(target: str, namespace: str, kubeconfig: Path | None, *, mermaid: bool) -> None:
    """Explain which policy applies to an owner, its groups, and what each step would do.

    KIND/NAME is a trainjob, jobset or job of a cluster. A FILE of manifests is explained without any: every
    job in it, as if it were applied together with the rest of the file; a runtime that the Trainer ships
    need not be. UIDs are not known then, so names of groups end in xxxxxxxx. Nothing is written.
    """
    render = as_mermaid if mermaid else as_text
    with errors_as_bad_input():
        is_file = Path(target).is_file()
        explanations = _of_file(Path(target)) if is_file else _of_cluster(target, namespace, kubeconfig)
        # Each as soon as it is known: a file may have thousands of jobs.
        for number, explanation in enumerate(explanations):
            echo(f"\n{render(explanation)}" if number else render(explanation), nl=False)


def _of_file(path: Path) -> Iterator[Explanation]:
    assumed = assume_cluster(first(read_snapshots([path])).objects)
    for note in assumed.notes:
        echo(f"muster: {note}", err=True)
    cluster = DryRunCluster(assumed.objects)
    with progress(len(assumed.owners), "jobs", hidden=sys.stdout.isatty()) as advance:
        for owner in assumed.owners:
            yield explain(cluster, KubernetesObject.read(owner).ref, _now())
            advance()


def _of_cluster(target: str, namespace: str, kubeconfig: Path | None) -> Iterator[Explanation]:
    kind, slash, name = target.partition("/")
    resource = _KINDS.get(kind.lower())
    if not slash or resource is None:
        raise BadInput(f"{target}: is neither a file nor trainjob/NAME, jobset/NAME or job/NAME")
    if kubeconfig is None:
        raise BadInput("no cluster: set --kubeconfig or $KUBECONFIG")
    try:
        client = Client.from_kubeconfig(str(kubeconfig), user_agent="muster-explain")
        ref = ObjectRef(resource.api_version, resource.kind, namespace, name)
        if client.get(resource, name, namespace) is None:
            raise BadInput(f"{ref} does not exist")
        yield explain(Versioned(client), ref, _now())
    except ClusterError as error:
        raise BadInput(f"{kubeconfig}: {error}") from None


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a command uses the real time
