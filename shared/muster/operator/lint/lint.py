"""Check policies and group labels in manifests that are applied together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from muster.cluster.observe.owner import read_owner
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.resources import by_kind
from muster.objects.text import cut_to
from muster.operator.explain.assumptions import (
    DEFAULT_NAMESPACE,
    AssumedObjects,
    UnknownRuntimeError,
    assume_cluster,
)
from muster.operator.explain.dry_run import DryRunCluster
from muster.operator.explain.quota import quota_warnings
from muster.operator.lint.labels import label_faults
from muster.operator.lint.model import Fault, Severity
from muster.operator.lint.policies import administrators_locks, policies_in
from muster.policy.model import NoOp
from muster.policy.reasons import Reason
from muster.policy.sources.source import PolicySource
from muster.policy.status.conditions import MESSAGE_LIMIT
from muster.replay.files import BadFileError
from muster.replay.snapshots import LocatedObject, Object, read_located
from muster.runtime.http.responses import first_fault
from muster.simulator.typed import type_fault

Found = tuple[Severity, str, str]
"""Severity, reason and message of a fault."""

MOST_FAULTS = 10_000
"""The most faults that are kept and shown. A list of templates in a file of a megabyte can have a hundred
thousand."""


@dataclass
class LintResult:
    """The result of a lint.

    Attributes:
        faults: in the order of the files; of more than MOST_FAULTS those found first.
        policies: how many policies were checked.
        owners: how many TrainJobs, JobSets, Jobs and runtimes were checked.
    """

    faults: list[Fault] = field(default_factory=list)
    policies: int = 0
    owners: int = 0
    _found: dict[Fault, None] = field(default_factory=dict)
    _counts: Counter[Severity] = field(default_factory=Counter)

    def add(self, fault: Fault) -> None:
        """Count a fault unless it was found before, and keep it unless there are too many."""
        fault = replace(fault, message=cut_to(fault.message, MESSAGE_LIMIT))
        if fault in self._found:
            return
        self._counts[fault.severity] += 1
        if len(self._found) < MOST_FAULTS:
            self._found[fault] = None

    @property
    def left_out(self) -> int:
        """How many faults are counted and not kept."""
        return self._counts.total() - len(self._found)

    def sort(self, files: Iterable[Path]) -> None:
        """Put the faults in the order of the files."""
        order = {str(path): number for number, path in enumerate(files)}
        self.faults = sorted(self._found, key=lambda fault: (order[fault.file], fault.document))

    def count(self, severity: Severity) -> int:
        """Return the number of faults of a severity, with those that are not kept."""
        return self._counts[severity]


def lint(
    files: Mapping[Path, bool],
    namespace: str = DEFAULT_NAMESPACE,
    *,
    progress: Callable[[str], object] = lambda _step: None,
) -> LintResult:
    """Check the objects of files as if all were applied together; of several with one name the last counts.

    Args:
        files: the files, and whether each was found in a folder, where YAML that is no object is skipped.
        namespace: of objects without one.
        progress: called with each step, `file 7`, `object 7` or `job 7`.
    """
    result = LintResult()
    entries: list[LocatedObject] = []
    for number, (path, in_folder) in enumerate(files.items(), start=1):
        progress(f"file {number}")
        try:
            located = read_located(path, skip_others=in_folder)
            entries += [_placed(entry, namespace) for entry in located]
        except BadFileError as error:
            result.add(Fault(Severity.ERROR, str(path), "", "UnreadableFile", _without(path, error)))
    entries = [entry for entry in entries if _can_be_read(entry, result)]
    latest = {_key(entry.body): entry for entry in entries}
    locks = [source for entry in latest.values() for source in administrators_locks(entry.body)]
    for number, entry in enumerate(entries, start=1):
        progress(f"object {number}")
        for found in _in_object(entry.body, locks, result):
            result.add(_fault(entry, found))
    assumed = assume_cluster(
        [entry.body for entry in latest.values()], namespace=namespace, progress=progress
    )
    for body, found in _in_owners(assumed, result, progress):
        result.add(_fault(latest[_key(body)], found))
    result.sort(files)
    return result


def _can_be_read(entry: LocatedObject, result: LintResult) -> bool:
    """Whether no field of an object has the wrong type; one that has is a fault of the result."""
    found = type_fault(entry.body)
    if found is not None:
        path, message = found
        fault = (Severity.ERROR, str(Reason.UNREADABLE_OBJECT), f"{path}: {message}")
        result.add(_fault(entry, fault))
    return found is None


def _placed(entry: LocatedObject, namespace: str) -> LocatedObject:
    """Return an object with its namespace."""
    body = entry.body
    try:
        namespaced = by_kind(body["apiVersion"], body["kind"]).namespaced
    except LookupError:
        return entry
    metadata = {"namespace": namespace, **body["metadata"]} if namespaced else body["metadata"]
    return LocatedObject(entry.path, entry.document, {**body, "metadata": metadata})


def _in_object(body: Object, locks: Sequence[PolicySource], result: LintResult) -> Iterator[Found]:
    """Yield the faults of an object by itself: of its labels and of the policies in it."""
    yield from label_faults(body)
    for found in policies_in(body, locks):
        result.policies += 1
        if found is not None:
            yield found


def _in_owners(
    assumed: AssumedObjects, result: LintResult, progress: Callable[[str], object]
) -> Iterator[tuple[Object, Found]]:
    """Yield the faults of owners: why their groups cannot be made, or could never be placed."""
    for body, error in assumed.faults:
        unknown = isinstance(error, UnknownRuntimeError)
        reason = "UnknownRuntime" if unknown else Reason.UNREADABLE_OBJECT
        severity = Severity.WARNING if unknown else Severity.ERROR
        yield assumed.examples.get(id(body), body), (severity, str(reason), str(error))
    cluster = DryRunCluster(assumed.objects)
    for owner in assumed.owners:
        written = assumed.examples.get(id(owner), owner)
        result.owners += 1
        for found in _in_owner(cluster, KubernetesObject.read(owner).ref):
            yield written, found
        progress(f"job {result.owners}")


def _in_owner(cluster: DryRunCluster, ref: ObjectRef) -> Iterator[Found]:
    try:
        _, resolved = read_owner(cluster, ref, classes=True)
        if isinstance(resolved, NoOp):
            return
        if resolved.failure is not None:
            yield Severity.ERROR, str(resolved.failure.reason), resolved.failure.message
        for warning in quota_warnings(cluster, resolved):
            yield Severity.WARNING, "QuotaTooSmall", warning
        for stage in resolved.stages:
            yield Severity.WARNING, str(Reason.HOLDS_WHILE_WAITING), str(stage)
    except ValidationError as error:
        path, message = first_fault(error)
        yield Severity.ERROR, str(Reason.UNREADABLE_OBJECT), f"{path}: {message}"


def _fault(entry: LocatedObject, found: Found) -> Fault:
    metadata, (severity, reason, message) = entry.body["metadata"], found
    name = f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else metadata["name"]
    named = f"{entry.body['kind']} {name}"
    # The message names the object again, because in a cluster it stands in conditions of others too.
    message = message.replace(f" of {named}: ", ": ", 1)
    return Fault(severity, str(entry.path), named, reason, message, document=entry.document)


def _key(body: Object) -> tuple[str, str, str]:
    metadata = body["metadata"]
    return body["kind"], metadata.get("namespace") or "", metadata["name"]


def _without(path: Path, error: BadFileError) -> str:
    """Return the message of an error without the path of its file."""
    return str(error).removeprefix(str(path)).lstrip(": ")
