"""`muster lint`: check policies and group labels in manifests, for CI."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from muster.cli.common import BadInput, echo_data, output_option, path_of
from muster.cli.dry_run import (
    DEFAULT_NAMESPACE,
    RUNTIMES,
    AssumedObjects,
    DryRunCluster,
    UnknownRuntimeError,
    assume_cluster,
)
from muster.cluster.interface import POLICY_NAMESPACE
from muster.cluster.observe.owner import read_owner
from muster.objects.meta import KubernetesObject
from muster.objects.resources import by_kind, is_known
from muster.policy.group_labels import (
    GATE_SWITCH,
    GROUP,
    GROUP_PER,
    GROUP_SIZE,
    LEADER_GROUP,
    LEADER_GROUP_PER,
    NAMESPACE_SWITCH,
    OPTED_OUT,
    PER_BLOCK_OF_JOB,
    PER_JOB,
    is_musters,
    read_group_labels,
)
from muster.policy.model import NoOp
from muster.policy.owners import owner_kind
from muster.policy.reasons import Reason
from muster.policy.sources.source import (
    ANNOTATION,
    CONFIG_MAP,
    InvalidPolicy,
    PolicySource,
    PolicySourceKind,
    locked_fields,
    resolve_policy,
    source_of_config_map,
    sources_of_runtime,
)
from muster.replay.files import BadFileError
from muster.replay.snapshots import LocatedObject, Object, read_located
from muster.runtime.http.responses import first_fault
from muster.simulator.typed import type_fault

_SUFFIXES = {".yaml", ".yml", ".json"}
_PREFIX = "muster.dev/"
_PLACES = {"pod": "a pod template", "Namespace": "a Namespace", "owner": "a job or runtime"}


class Severity(StrEnum):
    """Whether pods run in another way than the manifest says, or something deserves a look."""

    ERROR = "error"
    WARNING = "warning"


Found = tuple[Severity, str, str]
"""Severity, reason and message of a fault."""


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


def _files(targets: Sequence[str]) -> dict[Path, bool]:
    """Return the files, and whether each was found in a folder."""
    files: dict[Path, bool] = {}
    for path in map(path_of, targets):
        if not path.exists():
            raise BadInput(f"{path}: No such file or folder")
        if not path.is_dir():
            files[path] = False
            continue
        found = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
        files |= {file: True for file in found if file not in files}
    if not files:
        raise BadInput(f"{', '.join(targets)}: has no file that ends in .yaml, .yml or .json")
    return files


def lint(files: Mapping[Path, bool], namespace: str = DEFAULT_NAMESPACE) -> list[Fault]:
    """Check the objects of files as if all were applied together; of several with one name the last counts.

    In a file that was found in a folder YAML that is no object is skipped.
    """
    found: dict[Fault, None] = {}
    readable: dict[tuple[str, str, str], LocatedObject] = {}
    checked: list[LocatedObject] = []
    for path, in_folder in files.items():
        try:
            entries = [_placed(entry, namespace) for entry in read_located(path, skip_others=in_folder)]
        except BadFileError as error:
            message = str(error).removeprefix(str(path)).lstrip(": ")
            found[Fault(Severity.ERROR, str(path), "", "UnreadableFile", message)] = None
            continue
        for entry in entries:
            if wrong := type_fault(entry.body):
                fault = (Severity.ERROR, str(Reason.UNREADABLE_OBJECT), ": ".join(wrong))
                found[_fault(entry, fault)] = None
            else:
                readable[_key(entry.body)] = entry
                checked.append(entry)
    locks = [source for entry in readable.values() for source in _administrators_locks(entry.body)]
    for entry in checked:
        for one in (*_label_faults(entry.body), *_in_policies(entry.body, locks)):
            found[_fault(entry, one)] = None
    assumed = assume_cluster([entry.body for entry in readable.values()], namespace)
    for body, one in _in_owners(assumed):
        found[_fault(readable[_key(body)], one)] = None
    order = {str(path): number for number, path in enumerate(files)}
    return sorted(found, key=lambda fault: (order[fault.file], fault.document))


def _placed(entry: LocatedObject, namespace: str) -> LocatedObject:
    body = entry.body
    kind = body["apiVersion"], body["kind"]
    if not (is_known(*kind) and by_kind(*kind).namespaced):
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
    if isinstance(policy, InvalidPolicy):
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
            where = f"annotation {ANNOTATION} of {_named(body)}"
            yield PolicySource(PolicySourceKind.OWNER, where, text)


def _is_policy(body: Object) -> bool:
    return bool(body["kind"] == "ConfigMap" and body["metadata"]["name"] == CONFIG_MAP and body.get("data"))


def _is_administrators(body: Object) -> bool:
    return bool(body["metadata"].get("namespace") == POLICY_NAMESPACE)


def _in_owners(assumed: AssumedObjects) -> Iterator[tuple[Object, Found]]:
    """Yield the faults of owners: why their groups cannot be made, or could never be placed."""
    for body, error in assumed.faults:
        found = Severity.ERROR, str(Reason.UNREADABLE_OBJECT), str(error)
        if isinstance(error, UnknownRuntimeError):
            found = Severity.WARNING, "UnknownRuntime", str(error)
        yield assumed.examples.get(id(body), body), found
    cluster = DryRunCluster(assumed.objects)
    for owner in assumed.owners:
        for found in _in_owner(cluster, owner):
            yield assumed.examples.get(id(owner), owner), found


def _in_owner(cluster: DryRunCluster, owner: Object) -> Iterator[Found]:
    try:
        _, resolved = read_owner(cluster, KubernetesObject.read(owner).ref, classes=True)
        if isinstance(resolved, NoOp):
            return
        if resolved.failure is not None:
            yield Severity.ERROR, str(resolved.failure.reason), resolved.failure.message
        for stage in resolved.stages:
            yield Severity.WARNING, str(Reason.HOLDS_WHILE_WAITING), str(stage)
    except ValidationError as error:
        path, message = first_fault(error)
        yield Severity.ERROR, str(Reason.UNREADABLE_OBJECT), f"{path}: {message}"


def _fault(entry: LocatedObject, found: Found) -> Fault:
    severity, reason, message = found
    named = _named(entry.body)
    # The message names the object again, because in a cluster it stands in conditions of others too.
    message = message.replace(f" of {named}: ", ": ", 1)
    return Fault(severity, str(entry.path), named, reason, message, document=entry.document)


def _named(body: Object) -> str:
    kind, namespace, name = _key(body)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _key(body: Object) -> tuple[str, str, str]:
    metadata = body["metadata"]
    return body["kind"], metadata.get("namespace") or "", metadata["name"]


def _names_a_group(value: str) -> bool:
    return value == OPTED_OUT or read_group_labels({GROUP: value}) is not None


def _is_a_size(value: str) -> bool:
    read = read_group_labels({GROUP: "any", GROUP_SIZE: value})
    return read is not None and read.shape.size > 0


_RULES: Mapping[str, tuple[str, str, Callable[[str], bool], str]] = {
    GROUP: ("labels", "pod", _names_a_group, f"a DNS label or {OPTED_OUT}"),
    LEADER_GROUP: ("labels", "pod", _names_a_group, "a DNS label"),
    GROUP_SIZE: ("labels", "pod", _is_a_size, "a number from 1 to 999999"),
    GROUP_PER: (
        "labels",
        "pod",
        {PER_JOB, PER_BLOCK_OF_JOB}.__contains__,
        f"{PER_JOB} or {PER_BLOCK_OF_JOB}",
    ),
    LEADER_GROUP_PER: ("labels", "pod", {PER_JOB}.__contains__, PER_JOB),
    GATE_SWITCH: ("annotations", "pod", {"off"}.__contains__, "off"),
    NAMESPACE_SWITCH: ("labels", "Namespace", {"enabled"}.__contains__, "enabled"),
    ANNOTATION: ("annotations", "owner", lambda _policy: True, ""),
}
"""Of each label or annotation the field and place where it is read, which values are valid, and in words."""


def _label_faults(body: Mapping[str, Any]) -> Iterator[Found]:
    """Yield severity, reason and message of each label or annotation that has no effect."""
    if is_musters(body["metadata"].get("labels") or {}):
        return  # Muster's own objects have labels of their own
    for path, place, metadata in _metadata(body):
        for part in ("labels", "annotations"):
            values = metadata.get(part)
            for name, value in values.items() if isinstance(values, Mapping) else ():
                if str(name).startswith(_PREFIX):
                    found = _check(place, part, str(name), str(value))
                    if found is not None:
                        severity, reason, message = found
                        yield severity, reason, f"{path}.{part}: {name}: {message}"


def _check(place: str, part: str, name: str, value: str) -> Found | None:
    rule = _RULES.get(name)
    if rule is None:
        near = difflib.get_close_matches(name, _RULES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return Severity.WARNING, "UnknownLabel", f"Muster does not know it{hint}"
    read_part, read_place, valid, values = rule
    if (read_part, read_place) != (part, place):
        where = read_part if read_part != part else _PLACES[read_place]
        return Severity.WARNING, "MisplacedLabel", f"has no effect: it is read from {where}"
    if not valid(value):
        return Severity.ERROR, "InvalidLabel", f"{value!r} has no effect: must be {values}"
    return None


def _metadata(body: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield path, place and content of the metadata of an object and of all templates in it."""
    templates = list(_templates(body.get("spec"), "spec"))
    metadata: Mapping[str, Any] = body["metadata"]
    if body.get("kind") == "Job":
        # To a Job without labels the API server copies those of its pod template (SetDefaults_Job).
        copied = {item for _, _, each in templates for item in (each.get("labels") or {}).items()}
        own = {item for item in (metadata.get("labels") or {}).items() if item not in copied}
        metadata = {**metadata, "labels": dict(own)}
    yield "metadata", {"Pod": "pod", "Namespace": "Namespace"}.get(str(body.get("kind")), "owner"), metadata
    yield from templates


def _templates(at: Any, path: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield path, place and content of the metadata of each template below a field."""
    if isinstance(at, list):
        for number, entry in enumerate(at):
            yield from _templates(entry, f"{path}[{number}]")
    elif isinstance(at, Mapping):
        metadata, spec = at.get("metadata"), at.get("spec")
        if isinstance(metadata, Mapping):
            is_pod = isinstance(spec, Mapping) and "containers" in spec
            yield f"{path}.metadata", "pod" if is_pod else "owner", metadata
        for key, value in at.items():
            if key != "metadata":
                yield from _templates(value, f"{path}.{key}")
