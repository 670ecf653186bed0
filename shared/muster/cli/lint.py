"""`muster lint`: check policies and group labels in manifests, for CI."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import click

from muster.cli.advice import why_not_marked, why_unmarked
from muster.cli.common import BadInput, echo_data, output_option, path_of
from muster.cli.dry_run import (
    DEFAULT_NAMESPACE,
    RUNTIMES,
    AssumedObjects,
    DryRunCluster,
    UnknownRuntimeError,
    assume_cluster,
    is_cron_job,
)
from muster.cli.lint_gangs import KINDS_READ_FOR_GANGS, gang_faults
from muster.cli.lint_labels import PREFIX, Found, Severity, gang_templates, label_faults
from muster.cluster.interface import POLICY_NAMESPACE
from muster.cluster.observe.owner import read_owner
from muster.objects.meta import ref_of
from muster.objects.resources import by_kind, is_known
from muster.policy.group_labels import GROUP
from muster.policy.model import NoOp
from muster.policy.owners import owner_kind
from muster.policy.owners.job import Job
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner
from muster.policy.sources.source import (
    ANNOTATION,
    CONFIG_MAP,
    PolicySource,
    PolicySourceKind,
    locked_fields,
    resolve_policy,
    source_of_config_map,
    sources_of_runtime,
)
from muster.replay.files import BadFileError
from muster.replay.snapshots import LocatedObject, Named, Object, name_of, read_located
from muster.simulator.typed import type_fault

_SUFFIXES = {".yaml", ".yml", ".json"}
_AS_ASKED = {Reason.FINISHED, Reason.DELETED, Reason.MANAGED_ELSEWHERE, Reason.NOT_MUSTERS}
"""Reasons to leave a Job alone that are no surprise."""


@dataclass(frozen=True)
class Fault:
    """A fault; `muster lint -o json` prints these fields.

    Attributes:
        object: `Job team-a/llama`; "" if the file cannot be read.
        reason: a `muster.policy.reasons.Reason`, `UnreadableFile`, `UnknownLabel` or the like.
        document: number of the document in the file, from 1; 0 if the file cannot be read.
    """

    severity: Severity
    file: str
    object: str
    reason: str
    message: str
    document: int = field(default=0, kw_only=True)

    def __str__(self) -> str:
        """The fault as one line."""
        where = f"{self.file}: {self.object}" if self.object else self.file
        return " ".join(f"{self.severity}: {where}: {self.reason}: {self.message}".split())


@click.command("lint")
@click.argument("targets", metavar="FILE|FOLDER...", nargs=-1, required=True)
@click.option(
    "-n", "--namespace", default=DEFAULT_NAMESPACE, show_default=True, help="Of objects without one."
)
@click.option("--strict", is_flag=True, help="Fail for warnings too.")
@output_option
def command(targets: tuple[str, ...], namespace: str, output: str, *, strict: bool) -> None:
    """Check every policy and group label in manifests, and whether the groups of each job can be made.

    All FILEs, those in each FOLDER (.yaml, .yml and .json, at any depth) and - for standard input are checked
    as if they were applied together; no cluster is asked.

    Exits with 1 if there is an error, with --strict also for a warning.
    """
    files = _files(targets)
    faults = lint(files, namespace)
    errors = sum(fault.severity is Severity.ERROR for fault in faults)
    if output == "text":
        for fault in faults:
            click.echo(str(fault))
        click.echo(f"{len(files)} files: {errors} errors, {len(faults) - errors} warnings")
    else:
        echo_data([asdict(fault) for fault in faults], output)
    if errors or (strict and faults):
        raise SystemExit(1)


def _files(targets: Sequence[str]) -> dict[Path, Path]:
    """Return the files, and for each the target by which it was found: itself, or a folder."""
    files: dict[Path, Path] = {}
    for path in map(path_of, targets):
        if not path.exists():
            raise BadInput(f"{path}: No such file or folder")
        if not path.is_dir():
            files[path] = path
            continue
        found = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
        files |= {file: path for file in found if file not in files}
    if not files:
        raise BadInput(f"{', '.join(targets)}: has no file that ends in .yaml, .yml or .json")
    return files


def lint(files: Mapping[Path, Path], namespace: str = DEFAULT_NAMESPACE) -> list[Fault]:
    """Check the objects of files as if all were applied together; of several with one name the last counts.

    In a file that was found in a folder YAML that is no object is skipped.
    """
    found: dict[Fault, None] = {}
    readable: dict[Named, LocatedObject] = {}
    checked: list[LocatedObject] = []
    for path, target in files.items():
        try:
            entries = [_placed(entry, namespace) for entry in read_located(path, skip_others=path != target)]
        except BadFileError as error:
            message = str(error).removeprefix(str(path)).lstrip(": ")
            found[Fault(Severity.ERROR, str(path), "", "UnreadableFile", message)] = None
            continue
        for entry in entries:
            if wrong := type_fault(entry.body):
                fault = (Severity.ERROR, str(Reason.UNREADABLE_OBJECT), ": ".join(wrong))
                found[_fault(entry, fault)] = None
            else:
                readable[name_of(entry.body)] = entry
                checked.append(entry)
    locks = [source for entry in readable.values() for source in _administrators_locks(entry.body)]
    for entry in checked:
        for one in (*label_faults(entry.body), *gang_faults(entry.body), *_in_policies(entry.body, locks)):
            found[_fault(entry, one)] = None
    assumed = assume_cluster([entry.body for entry in readable.values()], namespace)
    for body, one in _in_owners(assumed, {name for kind, _, name in readable if kind == "Namespace"}):
        found[_fault(readable[name_of(body)], one)] = None
    read = {files[entry.path] for entry in checked if _is_read(entry.body)}
    read |= {files[Path(fault.file)] for fault in found}
    for target in dict.fromkeys(files.values()):
        if target not in read:
            message = "no object in it is one that Muster reads"
            found[Fault(Severity.WARNING, str(target), "", "NothingChecked", message)] = None
    order = {str(path): number for number, path in enumerate(dict.fromkeys([*files, *files.values()]))}
    return sorted(found, key=lambda fault: (order[fault.file], fault.document))


def _is_read(body: Object) -> bool:
    """Whether an object can change what Muster does."""
    if body["kind"] == "ConfigMap":
        return _is_policy(body)
    is_read = is_known(body["apiVersion"], body["kind"]) and body["kind"] not in KINDS_READ_FOR_GANGS
    return is_read or is_cron_job(body) or bool(gang_templates(body))


def _placed(entry: LocatedObject, namespace: str) -> LocatedObject:
    body = entry.body
    kind = body["apiVersion"], body["kind"]
    if not (is_cron_job(body) or (is_known(*kind) and by_kind(*kind).namespaced)):
        return entry
    return replace(entry, body={**body, "metadata": {"namespace": namespace, **body["metadata"]}})


def _in_policies(body: Object, locks: Sequence[PolicySource]) -> Iterator[Found]:
    """Yield the first fault of each policy in an object, and of locked fields."""
    for source in _sources(body):
        yield from _invalid((*locks, source))
    for source in locked_fields(body) if _is_policy(body) else ():
        if _is_administrators(body):
            yield from _invalid((source,))
        else:
            message = f"{source.where}: has no effect: fields are locked in namespace {POLICY_NAMESPACE} only"
            yield Severity.WARNING, "MisplacedPolicy", message


def _administrators_locks(body: Object) -> list[PolicySource]:
    """Return the fields that an administrator's ConfigMap locks, if they can be read."""
    if not (_is_policy(body) and _is_administrators(body)):
        return []
    return [source for source in locked_fields(body) if not list(_invalid((source,)))]


def _invalid(sources: tuple[PolicySource, ...]) -> Iterator[Found]:
    policy = resolve_policy(sources)
    if policy.failure is not None:
        yield Severity.ERROR, str(policy.failure.reason), policy.failure.message


def _sources(body: Object) -> Iterator[PolicySource]:
    """Yield the policies that are written in an object."""
    if not is_known(body["apiVersion"], body["kind"]):  # a kind of that name in another API group
        return
    if _is_policy(body):
        kind = PolicySourceKind.CLUSTER if _is_administrators(body) else PolicySourceKind.NAMESPACE
        yield from source_of_config_map(body, kind)
    elif body["kind"] in RUNTIMES:
        yield from (one for one in sources_of_runtime(body) if one.kind is not PolicySourceKind.UPSTREAM)
    elif owner_kind(body["apiVersion"].rpartition("/")[0], body["kind"]) is not None:
        text = (body["metadata"].get("annotations") or {}).get(ANNOTATION)
        if text is not None:
            where = f"annotation {ANNOTATION} of {ref_of(body)}"
            yield PolicySource(PolicySourceKind.OWNER, where, text)


def _is_policy(body: Object) -> bool:
    return bool(body["kind"] == "ConfigMap" and body["metadata"]["name"] == CONFIG_MAP and body.get("data"))


def _is_administrators(body: Object) -> bool:
    return bool(body["metadata"].get("namespace") == POLICY_NAMESPACE)


def _in_owners(assumed: AssumedObjects, namespaces: Collection[str]) -> Iterator[tuple[Object, Found]]:
    """Yield the faults of owners: why their groups cannot be made, or could never be placed."""
    for body, error in assumed.faults:
        found = Severity.ERROR, str(Reason.UNREADABLE_OBJECT), str(error)
        if isinstance(error, UnknownRuntimeError):
            found = Severity.WARNING, "UnknownRuntime", str(error)
        yield assumed.examples.get(id(body), body), found
    cluster = DryRunCluster(assumed.objects)
    for owner in assumed.owners:
        for found in _in_owner(cluster, owner, namespaces):
            yield assumed.examples.get(id(owner), owner), found


def _in_owner(cluster: DryRunCluster, owner: Object, namespaces: Collection[str]) -> Iterator[Found]:
    live, resolved = read_owner(cluster, ref_of(owner), classes=True)
    if isinstance(resolved, NoOp):
        yield from _left_alone(cluster, live, resolved, namespaces)
        return
    if resolved.failure is not None:
        yield Severity.ERROR, str(resolved.failure.reason), resolved.failure.message
    for reason, message in resolved.warnings:
        yield Severity.WARNING, str(reason), message


def _left_alone(
    cluster: DryRunCluster, live: LiveOwner, skipped: NoOp, namespaces: Collection[str]
) -> Iterator[Found]:
    """Yield why a Job is no gang if it looks as if it was to be one.

    It has something of Muster's, or is in a namespace that the files opt in. In a namespace that the files do
    not have, of which that is only assumed, it has several pods.
    """
    job = live.owner
    if not isinstance(job, Job) or skipped.reason in _AS_ASKED:
        return
    template, where = job.spec.template.metadata, job.metadata.namespace
    if GROUP in template.labels and skipped.reason == Reason.NOT_MARKED:  # `none`, or no valid label
        return
    of_musters = {**template.labels, **template.annotations, **job.metadata.annotations}
    several = job.spec.parallelism > 1 or where in namespaces
    if any(name.startswith(PREFIX) for name in of_musters) or (several and not why_unmarked(cluster, where)):
        why = "; ".join(why_not_marked(cluster, live, skipped)) or skipped.message
        hint = f" ({GROUP}: none there ends this warning)" if GROUP not in template.labels else ""
        yield Severity.WARNING, str(skipped.reason), f"is no gang: {why}{hint}"


def _fault(entry: LocatedObject, found: Found) -> Fault:
    severity, reason, message = found
    named = str(ref_of(entry.body))
    # The message names the object again, because in a cluster it stands in conditions of others too.
    message = message.replace(f" of {named}: ", ": ", 1)
    return Fault(severity, str(entry.path), named, reason, message, document=entry.document)
