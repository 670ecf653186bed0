"""`muster explain`: explain how the jobs of files, or one of a cluster, are grouped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from pydantic import ValidationError

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.common import STDIN, BadInput, CommandError, errors_as_bad_input, path_of
from muster.cluster.errors import ApiGone
from muster.cluster.versioned import Versioned
from muster.objects.meta import KubernetesObject, ObjectRef, ref_of
from muster.objects.resources import Resource
from muster.operator.dry_run import DEFAULT_NAMESPACE, DryRunCluster, assume_cluster
from muster.operator.explain import explain
from muster.policy.owners import KINDS
from muster.replay.files import BadFileError
from muster.replay.snapshots import first, read_snapshots
from muster.runtime.http.responses import first_fault

_RESOURCES = {
    name: kind.resource for kind in KINDS for name in (kind.resource.kind.lower(), kind.resource.plural)
}


@click.command("explain")
@click.argument("targets", metavar="KIND/NAME | KIND NAME | FILE...", nargs=-1, required=True)
@click.option("-n", "--namespace", default="", help="Namespace in the cluster; default: the context's.")
@cluster_options
def command(targets: tuple[str, ...], namespace: str, options: KubeconfigOptions) -> None:
    """Explain which policy applies to an owner, its groups, what each step would do, and what it waits for.

    KIND/NAME is a trainjob, jobset or job of a cluster. A FILE of manifests, or - for standard input, is
    explained as if it were applied, every job and unused runtime in it, without any cluster: a runtime that
    the Trainer ships need not be in it. UIDs are not known then, so names of groups end in xxxxxxxx. Nothing
    is written.
    """
    now = datetime.now(UTC)  # noqa: TID251 - a command uses the real time
    if all(map(_is_file, targets)):
        with errors_as_bad_input():
            for number, text in enumerate(_of_files(list(map(path_of, targets)), namespace, now)):
                click.echo(f"\n{text}" if number else text, nl=False)
        return
    resource, name = _named(targets)
    with connected(options, "explain") as cluster:
        ref = ObjectRef(resource.api_version, resource.kind, namespace or cluster.namespace, name)
        reader = Versioned(cluster.client)
        try:
            body = reader.get(resource, name, ref.namespace)
        except ApiGone:
            raise CommandError(f"{cluster.client.url}: does not serve {resource.plural}") from None
        if body is None:
            cluster.require_namespace(ref.namespace)
            raise CommandError(f"{cluster.client.url}: {ref} does not exist")
        click.echo(explain(reader, ref, now), nl=False)


def _of_files(paths: Sequence[Path], namespace: str, now: datetime) -> Iterator[str]:
    """Yield the explanation of each owner in files; print what is assumed, and what cannot be explained."""
    assumed = assume_cluster(first(read_snapshots(paths)).objects, namespace or DEFAULT_NAMESPACE)
    if not (assumed.owners or assumed.faults):
        raise BadInput(f"{', '.join(map(str, paths))}: has no TrainJob, JobSet, Job or runtime")
    for note in assumed.notes:
        click.echo(f"muster: {note}", err=True)
    cluster = DryRunCluster(assumed.objects)
    for owner in assumed.owners:
        try:
            yield explain(cluster, KubernetesObject.read(owner).ref, now)
        except ValidationError as error:
            path, message = first_fault(error)
            raise BadFileError(f"{ref_of(owner)}: {path}", message) from None
    for _, fault in assumed.faults:
        click.echo(f"muster: {fault}", err=True)
    if assumed.faults:
        raise SystemExit(BadInput.exit_code)


def _named(targets: Sequence[str]) -> tuple[Resource, str]:
    """Return the kind and the name of `KIND/NAME` or `KIND NAME`.

    Raises:
        BadInput: it has another form, or another kind.
    """
    text = "/".join(targets)
    kind, _, name = text.partition("/")
    resource = _RESOURCES.get(kind.lower().partition(".")[0])
    if resource is None or not name or "/" in name:
        kinds = ", ".join(kind.resource.kind.lower() for kind in KINDS)
        raise BadInput(f"{' '.join(targets)}: is neither a file nor KIND/NAME with one of {kinds}")
    return resource, name


def _is_file(target: str) -> bool:
    return target == STDIN or Path(target).is_file()
