"""`muster explain`: explain how an owner is grouped, and what pods, groups, policies and runtimes are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from muster.cli.arguments import STDIN, BadInput, errors_as_bad_input, path_of
from muster.cli.cluster import Connection, KubeconfigOptions, cluster_options, connected
from muster.cli.output import CommandError, echo_items, output_option
from muster.cluster.errors import ApiGone
from muster.cluster.interface import Cluster
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef
from muster.objects.resources import Resource
from muster.operator.explain import Explanation, Facts, as_data, as_text
from muster.operator.explain.facts import EXPLAINED, explain_live, explain_owners, facts_of_files
from muster.operator.explain.files import DEFAULT_NAMESPACE, assume_cluster
from muster.replay.snapshots import first, read_snapshots


@click.command("explain")
@click.argument("targets", metavar="KIND/NAME | KIND NAME | FILE...", nargs=-1, required=True)
@click.option("-n", "--namespace", default="", help="Namespace in the cluster; default: the context's.")
@output_option("text", "json", "yaml")
@cluster_options
def command(targets: tuple[str, ...], namespace: str, output: str, options: KubeconfigOptions) -> None:
    """Explain which policy applies to an owner, its groups, what each step would do, and what it waits for.

    KIND/NAME is a trainjob, jobset, job, pod, podgroup, workload, configmap, trainingruntime or
    clustertrainingruntime of a cluster; of a pod or group its owner is explained too.

    A FILE of manifests, or - for standard input, is explained as if it were applied, every job in it, without
    any cluster: a runtime that the Trainer ships need not be in it. UIDs are not known then, so names of
    groups end in xxxxxxxx. With --kubeconfig or --context it is explained as if it were applied to that
    cluster. Nothing is written.
    """
    with errors_as_bad_input():
        if all(map(_is_file, targets)):
            explained = _of_files([path_of(target) for target in targets], namespace, options)
        else:
            explained = _of_cluster(*_named(targets), namespace, options)
        if output == "text":
            for number, one in enumerate(explained):
                click.echo(f"\n{as_text(one)}" if number else as_text(one), nl=False)
        else:
            echo_items(map(as_data, explained), output)


def _of_files(
    paths: Sequence[Path], namespace: str, options: KubeconfigOptions
) -> Iterator[Explanation | Facts]:
    if not options.given:
        yield from _as_applied(paths, None, namespace or DEFAULT_NAMESPACE)
        return
    with connected(options, "explain") as cluster:
        yield from _as_applied(paths, Versioned(cluster.client), namespace or cluster.namespace)


def _as_applied(
    paths: Sequence[Path], below: Cluster | None, namespace: str
) -> Iterator[Explanation | Facts]:
    assumed = assume_cluster(first(read_snapshots(paths)).objects, below, namespace)
    if not (assumed.owners or assumed.others or assumed.faults):
        files = ", ".join(map(str, paths))
        raise BadInput(f"{files}: has no TrainJob, JobSet, Job, runtime, pod, PodGroup, Workload or policy")
    for note in assumed.notes:
        click.echo(f"muster: {note}", err=True)
    yield from facts_of_files(assumed, below)
    yield from explain_owners(assumed, below, _now())
    for _, fault in assumed.faults:
        click.echo(f"muster: {fault}", err=True)
    if assumed.faults:
        raise SystemExit(BadInput.exit_code)


def _of_cluster(
    resource: Resource, name: str, namespace: str, options: KubeconfigOptions
) -> Iterator[Explanation | Facts]:
    with connected(options, "explain") as cluster:
        place = (namespace or cluster.namespace) if resource.namespaced else ""
        reader = Versioned(cluster.client)
        try:
            body = reader.get(resource, name, place)
        except ApiGone:
            raise CommandError(f"{cluster.client.url}: does not serve {resource.plural}") from None
        if body is None:
            raise _missing(cluster, ObjectRef(resource.api_version, resource.kind, place, name))
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        yield from explain_live(reader, {**kind, **body}, _now())


def _missing(cluster: Connection, ref: ObjectRef) -> CommandError:
    if ref.namespace:
        cluster.require_namespace(ref.namespace)
    return CommandError(f"{cluster.client.url}: {ref} does not exist")


def _named(targets: Sequence[str]) -> tuple[Resource, str]:
    """Return the kind and the name of `KIND/NAME` or `KIND NAME`.

    Raises:
        BadInput: it has another form, or another kind.
    """
    kind, slash, name = targets[0].partition("/")
    if len(targets) == 2 and not slash:  # noqa: PLR2004 - KIND NAME
        name = targets[1]
    elif len(targets) > 1:
        missing = next((target for target in targets if not _is_file(target)), targets[0])
        raise BadInput(f"{missing}: No such file; several arguments are files, or one kind and one name")
    resource = EXPLAINED.get(kind.lower().partition(".")[0])
    if resource is None or not name:
        kinds = ", ".join(dict.fromkeys(resource.kind.lower() for resource in EXPLAINED.values()))
        raise BadInput(f"{' '.join(targets)}: is neither a file nor KIND/NAME with one of {kinds}")
    return resource, name


def _is_file(target: str) -> bool:
    return target == STDIN or Path(target).is_file()


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a command uses the real time
