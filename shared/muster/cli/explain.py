"""`muster explain`: explain how an owner is grouped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from muster.cli.arguments import BadInput, errors_as_bad_input
from muster.cli.cluster import ClusterOptions, cluster_options, connected
from muster.cli.output import CommandError, echo, progress
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
@click.option("-n", "--namespace", default="", help="Namespace in the cluster; default: the context's.")
@cluster_options
@click.option("--mermaid", is_flag=True, help="Print a Mermaid flowchart instead of text.")
def command(target: str, namespace: str, options: ClusterOptions, *, mermaid: bool) -> None:
    """Explain which policy applies to an owner, its groups, and what each step would do.

    KIND/NAME is a trainjob, jobset or job of a cluster. A FILE of manifests is explained without any: every
    job in it, as if it were applied together with the rest of the file; a runtime that the Trainer ships
    need not be. UIDs are not known then, so names of groups end in xxxxxxxx. Nothing is written.
    """
    render = as_mermaid if mermaid else as_text
    with errors_as_bad_input():
        is_file = Path(target).is_file()
        explanations = _of_file(Path(target)) if is_file else _of_cluster(target, namespace, options)
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


def _of_cluster(target: str, namespace: str, options: ClusterOptions) -> Iterator[Explanation]:
    kind, slash, name = target.partition("/")
    resource = _KINDS.get(kind.lower())
    if not slash or resource is None:
        raise BadInput(f"{target}: is neither a file nor trainjob/NAME, jobset/NAME or job/NAME")
    with connected(options, "explain") as cluster:
        ref = ObjectRef(resource.api_version, resource.kind, namespace or cluster.namespace, name)
        if cluster.client.get(resource, name, ref.namespace) is None:
            cluster.require_namespace(ref.namespace)
            raise CommandError(f"{cluster.client.url}: {ref} does not exist")
        yield explain(Versioned(cluster.client), ref, _now())


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a command uses the real time
