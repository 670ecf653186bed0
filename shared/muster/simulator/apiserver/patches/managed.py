"""Field management: `metadata.managedFields` after updates and after server-side apply.

The rules are those of sigs.k8s.io/structured-merge-diff v6.4.2, `merge/update.go`, and of
k8s.io/apimachinery v0.37.1, `pkg/util/managedfields`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from muster.simulator.apiserver.objects import Object, at, now
from muster.simulator.apiserver.patches.fieldsets import (
    EMPTY,
    Comparison,
    Fields,
    Path,
    field_path,
    fields_of,
    from_v1,
    merged,
    to_v1,
    with_structs,
    without,
)
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import apply_conflict

UNTRACKED: Final[Fields] = frozenset(
    {
        *(("f:apiVersion",), ("f:kind",), ("f:metadata",)),
        *(("f:metadata", f"f:{name}") for name in ("name", "namespace", "creationTimestamp", "uid")),
        *(("f:metadata", f"f:{name}") for name in ("generation", "resourceVersion")),
    }
)
"""Fields that have no manager (`stripmeta.go`)."""

BEFORE_FIRST_APPLY = "before-first-apply"


@dataclass(frozen=True)
class FieldManager:
    """A field manager with operation, version and subresource, which identify its entry in managedFields."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The key of the entry; applies of a manager share an entry across API versions."""
        version = "" if self.operation == "Apply" else self.api_version
        return self.name, self.operation, version, self.subresource

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return text


@dataclass(frozen=True)
class ManagedFields:
    """The fields of a manager and the time of their last change, "" if a client wrote none."""

    manager: FieldManager
    fields: Fields
    time: str = ""

    def __str__(self) -> str:
        if self.manager.operation == "Apply":
            return str(self.manager)
        return f"{self.manager} using {self.manager.api_version}"


Managers = dict[tuple[str, str, str, str], ManagedFields]


def managers_of(obj: Object) -> Managers:
    """Return the managed fields of an object, by the identity of the manager."""
    managers: Managers = {}
    for entry in at(obj, "metadata", "managedFields") or []:
        if not entry.get("manager") or not isinstance(entry.get("fieldsV1"), dict):
            continue
        manager = FieldManager(
            entry["manager"],
            entry.get("operation", "Update"),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        fields = frozenset(from_v1(entry["fieldsV1"]))
        managers[manager.identity] = ManagedFields(manager, fields, entry.get("time", ""))
    return managers


def entries(managers: Managers) -> list[Object]:
    """Return the managedFields of an object: applies first, then by time and name."""
    listed = []
    for managed in managers.values():
        manager = managed.manager
        entry = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_v1(managed.fields),
            "time": managed.time,
            "subresource": manager.subresource,
        }
        if managed.fields:
            listed.append({key: value for key, value in entry.items() if value})
    return sorted(listed, key=lambda e: (e["operation"], e.get("time", ""), e["manager"], e["apiVersion"]))


def after_update(
    live: Object, changed: Object, schema: Schema, manager: FieldManager, reset: Fields = EMPTY
) -> list[Object]:
    """Return the managedFields after a POST, PUT or PATCH."""
    sent = changed if not manager.subresource else live  # a subresource does not take managedFields
    if at(sent, "metadata", "managedFields") and not managers_of(sent):
        return []  # an entry without manager or fields resets managedFields
    managers = managers_of(sent) or managers_of(live)
    if not managers and at(live, "metadata", "uid"):
        return []  # an object without managedFields stays without them until its first apply
    difference = _difference(live, changed, schema)
    written = _unless_reset(difference.added | difference.modified, reset)
    before = managers.get(manager.identity)
    _take_over(managers, manager, written | difference.modified, difference.removed)
    fields = (before.fields if before else EMPTY) - difference.removed | written
    _set_fields(managers, manager, fields - UNTRACKED)
    return entries(managers)


def apply(
    live: Object,
    applied: Object,
    schema: Schema,
    manager: FieldManager,
    *,
    force: bool,
    reset: Fields = EMPTY,
) -> tuple[Object, list[Object]]:
    """Server-side apply: set the applied fields and remove those that the manager no longer applies."""
    managers = managers_of(live)
    if not managers and at(live, "metadata", "uid"):
        first = FieldManager(BEFORE_FIRST_APPLY, "Update", manager.api_version)
        _set_fields(managers, first, frozenset(fields_of(_body(live), schema)) - UNTRACKED)
    before = managers.get(manager.identity)
    applied_fields = frozenset(_unless_reset(fields_of(_body(applied), schema), reset)) - UNTRACKED
    managers[manager.identity] = ManagedFields(manager, applied_fields, before.time if before else "")
    result = merged(_body(live), _body(applied), schema)
    if before is not None:
        kept = set[Path]().union(*(managed.fields for managed in managers.values()))
        # Including the structs that contain them: a struct without managed fields is removed entirely.
        removed = with_structs(before.fields, schema) - with_structs(kept, schema)
        result = without(result, removed & with_structs(fields_of(result, schema), schema), schema)
    difference = _difference(live, result, schema)
    changed = difference.added | difference.modified
    if not force:
        _refuse_conflicts(managers, manager, changed)
    _take_over(managers, manager, changed, difference.removed)
    unchanged = before is not None and before.fields == applied_fields
    time = before.time if before and unchanged else now()
    managers[manager.identity] = ManagedFields(manager, applied_fields, time)
    return result, entries(managers)


def _body(obj: Object) -> Object:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return obj | {"metadata": metadata}


def _difference(live: Object, changed: Object, schema: Schema) -> Comparison:
    return Comparison(_body(live), _body(changed), schema)


def _unless_reset(fields: set[Path], reset: Fields) -> set[Path]:
    if not reset:
        return fields
    return {path for path in fields if not any(path[: len(prefix)] == prefix for prefix in reset)}


def _set_fields(managers: Managers, manager: FieldManager, fields: Fields) -> None:
    before = managers.get(manager.identity)
    if before is not None and before.fields == fields:
        return
    if fields:
        managers[manager.identity] = ManagedFields(manager, fields, now())
    else:
        managers.pop(manager.identity, None)


def _take_over(managers: Managers, manager: FieldManager, written: set[Path], removed: set[Path]) -> None:
    for identity, managed in list(managers.items()):
        lost = removed if identity == manager.identity else written | removed
        if identity != manager.identity and managed.fields & lost:
            managers[identity] = replace(managed, fields=frozenset(managed.fields - lost))


def _refuse_conflicts(managers: Managers, manager: FieldManager, changed: set[Path]) -> None:
    conflicts = [
        (str(managed), field_path(path))
        for identity, managed in managers.items()
        if identity != manager.identity
        for path in sorted(managed.fields & changed)
    ]
    if not conflicts:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {owner}", "field": path}
        for owner, path in conflicts
    ]
    listed = ", ".join(f"conflict with {owner}: {path}" for owner, path in conflicts)
    raise apply_conflict(f"Apply failed with {len(conflicts)} conflicts: {listed}", causes)
