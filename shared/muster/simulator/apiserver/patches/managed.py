"""Who owns which fields: `metadata.managedFields`, updates that take fields over, server-side apply.

The rules are those of sigs.k8s.io/structured-merge-diff v6.4.2, `merge/update.go`, and of
k8s.io/apimachinery v0.37.1, `pkg/util/managedfields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from muster.simulator.apiserver.objects import Object, at, now
from muster.simulator.apiserver.patches.fieldsets import (
    EMPTY,
    Comparison,
    Fields,
    Path,
    fields_of,
    from_v1,
    merged,
    spelled,
    to_v1,
    with_structs,
    without,
)
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import ApiError, apply_conflict

UNTRACKED: Final[Fields] = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(("f:metadata", f"f:{name}") for name in ("name", "namespace", "creationTimestamp", "uid")),
        *(
            ("f:metadata", f"f:{name}")
            for name in ("selfLink", "generation", "resourceVersion", "clusterName")
        ),
    }
)
"""Fields that nobody owns (`stripmeta.go`)."""

BEFORE_FIRST_APPLY = "before-first-apply"


@dataclass(frozen=True)
class Manager:
    """Who writes, and how; entries of managedFields are told apart by this."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The same for all applies of one manager, whatever version they speak."""
        version = "" if self.operation == "Apply" else self.api_version
        return self.name, self.operation, version, self.subresource

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return text


@dataclass(frozen=True)
class Owned:
    """The fields of one manager and since when."""

    manager: Manager
    fields: Fields
    time: str = ""

    def __str__(self) -> str:
        if self.manager.operation == "Apply":
            return str(self.manager)
        return f"{self.manager} using {self.manager.api_version}"


Owners = dict[tuple[str, str, str, str], Owned]


def owners_of(obj: Object) -> Owners:
    """The owners that an object's managedFields name."""
    found: Owners = {}
    for entry in at(obj, "metadata", "managedFields") or []:
        if not entry.get("manager") or not isinstance(entry.get("fieldsV1"), dict):
            continue
        manager = Manager(
            entry["manager"],
            entry.get("operation", "Update"),
            entry.get("apiVersion", ""),
            entry.get("subresource", ""),
        )
        found[manager.identity] = Owned(manager, frozenset(from_v1(entry["fieldsV1"])), entry.get("time", ""))
    return found


def entries(owners: Owners) -> list[Object]:
    """The managedFields that say this; applies first, then by time and name."""
    found = []
    for owned in owners.values():
        if not owned.fields:
            continue
        manager = owned.manager
        entry: Object = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": manager.api_version,
        }
        entry |= {"time": owned.time, "fieldsType": "FieldsV1", "fieldsV1": to_v1(owned.fields)}
        found.append(entry | ({"subresource": manager.subresource} if manager.subresource else {}))
    return sorted(found, key=lambda e: (e["operation"], e["time"], e["manager"], e["apiVersion"]))


def after_update(
    live: Object, changed: Object, schema: Schema, manager: Manager, reset: Fields = EMPTY
) -> list[Object]:
    """The managedFields after somebody wrote `changed` over `live` by PUT, PATCH or POST.

    Args:
        live: the object as it was; empty structs for a new one.
        changed: the object as written, defaults included.
        schema: the kind's schema with `metadata`.
        manager: who writes.
        reset: prefixes of fields that this endpoint does not let anybody write.
    """
    if at(changed, "metadata", "managedFields") and not owners_of(changed):
        return []  # the writer asked for all owners to be forgotten
    owners = owners_of(changed) or owners_of(live)
    if not owners and at(live, "metadata", "uid"):
        return []  # an object from before ownership was tracked stays so until its first apply
    difference = _difference(live, changed, schema)
    written = _unless_reset(difference.added | difference.modified, reset)
    before = owners.get(manager.identity)
    _take_over(owners, manager, written | difference.modified, difference.removed)
    mine = (before.fields if before else EMPTY) - difference.removed | written
    _own(owners, manager, mine - UNTRACKED)
    return entries(owners)


def apply(
    live: Object, wanted: Object, schema: Schema, manager: Manager, *, force: bool, reset: Fields = EMPTY
) -> tuple[Object, list[Object]]:
    """Server-side apply: the live object with what `wanted` sets, without what its manager no longer sets.

    Args:
        live: the object as it is; without uid when it is to be created.
        wanted: the applied configuration, not defaulted.
        schema: the kind's schema with `metadata`.
        manager: who applies.
        force: take over fields of other managers.
        reset: prefixes of fields that this endpoint does not let anybody write.

    Returns:
        The object to store and its managedFields.

    Raises:
        ApiError: 409, fields of other managers would change.
    """
    owners = owners_of(live)
    if not owners and at(live, "metadata", "uid"):
        first = Manager(BEFORE_FIRST_APPLY, "Update", manager.api_version)
        _own(owners, first, frozenset(fields_of(_body(live), schema)) - UNTRACKED)
    before = owners.get(manager.identity)
    wanted_fields = frozenset(_unless_reset(fields_of(_body(wanted), schema), reset)) - UNTRACKED
    owners[manager.identity] = Owned(manager, wanted_fields, before.time if before else "")
    result = merged(_body(live), _body(wanted), schema)
    if before is not None:
        kept = set[Path]().union(*(owned.fields for owned in owners.values()))
        # With the structs around them: one that nothing owned is left in goes as a whole, without a trace.
        gone = with_structs(before.fields, schema) - with_structs(kept, schema)
        result = without(result, gone & with_structs(fields_of(result, schema), schema), schema)
    difference = _difference(live, result, schema)
    changed = difference.added | difference.modified
    if not force:
        _refuse_conflicts(owners, manager, changed)
    _take_over(owners, manager, changed, difference.removed)
    unchanged_set = before is not None and before.fields == wanted_fields
    time = before.time if before and unchanged_set else now()
    owners[manager.identity] = Owned(manager, wanted_fields, time)
    return result, entries(owners)


def _body(obj: Object) -> Object:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    return obj | {"metadata": metadata}


def _difference(live: Object, changed: Object, schema: Schema) -> Comparison:
    return Comparison(_body(live), _body(changed), schema)


def _unless_reset(fields: set[tuple[str, ...]], reset: Fields) -> set[tuple[str, ...]]:
    if not reset:
        return fields
    return {path for path in fields if not any(path[: len(prefix)] == prefix for prefix in reset)}


def _own(owners: Owners, manager: Manager, fields: Fields) -> None:
    before = owners.get(manager.identity)
    if before is not None and before.fields == fields:
        return
    if fields:
        owners[manager.identity] = Owned(manager, fields, now())
    else:
        owners.pop(manager.identity, None)


def _take_over(
    owners: Owners, manager: Manager, written: set[tuple[str, ...]], removed: set[tuple[str, ...]]
) -> None:
    for identity, owned in list(owners.items()):
        lost = removed if identity == manager.identity else written | removed
        if identity != manager.identity and owned.fields & lost:
            owners[identity] = replace(owned, fields=frozenset(owned.fields - lost))


def _refuse_conflicts(owners: Mapping[Any, Owned], manager: Manager, changed: set[tuple[str, ...]]) -> None:
    found = [
        (owned, path)
        for identity, owned in owners.items()
        if identity != manager.identity
        for path in sorted(owned.fields & changed)
    ]
    if found:
        raise apply_conflict(
            _conflict_words(found),
            [
                {
                    "reason": "FieldManagerConflict",
                    "message": f"conflict with {owned}",
                    "field": spelled(path),
                }
                for owned, path in found
            ],
        )


def _conflict_words(found: list[tuple[Owned, tuple[str, ...]]]) -> str:
    if len(found) == 1:
        owned, path = found[0]
        return f"Apply failed with 1 conflict: conflict with {owned}: {spelled(path)}"
    by_owner: dict[str, list[str]] = {}
    for owned, path in found:
        by_owner.setdefault(str(owned), []).append(spelled(path))
    lines = []
    for owner in sorted(by_owner):
        lines += [f"conflicts with {owner}:", *(f"- {path}" for path in by_owner[owner])]
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


__all__ = ["ApiError", "Manager", "after_update", "apply", "owners_of"]
