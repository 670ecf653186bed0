"""Declarative validation: the rules of each field as data, and `check`, which applies them.

Source: k8s.io/apimachinery v0.37.1, `pkg/api/validate`. An update validates only the fields that it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.refusals import FieldError, immutable, invalid
from muster.simulator.apiserver.validation import names

Value = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """The rules of a field.

    They are applied in this order; up to `optional` a broken one ends the validation of the field.

    Attributes:
        immutable: the value does not change.
        kept: the field is not set or cleared later; its content may change.
        max_items: the most items of a list.
        named: the names of a list's items are unique, and no item is added or removed later.
        required: the value is set and not zero.
        optional: an unset value ends the validation.
        form: what is wrong with a text.
        least: the smallest number.
        most: the largest number.
        values: the only values.
        struct: the rules of the value or of each item.
        always: an unset struct is validated as an empty one.
    """

    immutable: bool = False
    kept: bool = False
    max_items: int = 0
    named: bool = False
    required: bool = False
    optional: bool = False
    form: names.Form | None = None
    least: int | None = None
    most: int | None = None
    values: tuple[str, ...] = ()
    struct: Struct | None = None
    always: bool = False


@dataclass(frozen=True)
class Struct:
    """The rules of a Go struct, exactly one of whose fields in `one_of` is set."""

    fields: dict[str, Field]
    one_of: tuple[str, ...] = ()


def check(struct: Struct, value: Value, old: Value | None, path: str) -> list[FieldError]:
    """Return the errors of a struct; `old` is None on creation."""
    errors = []
    found, before = (
        [name for name in struct.one_of if (v or {}).get(name) not in (None, [])] for v in (value, old)
    )
    if struct.one_of and len(found) != 1 and not (old and found == before):
        why = f"must specify exactly one of: {', '.join(struct.one_of)}"
        errors.append(invalid(path, ", ".join(found), why))
    for name, field in struct.fields.items():
        errors += _field(field, value.get(name), old, f"{path}.{name}", name)
    return errors


def _field(field: Field, value: Any, parent: Value | None, path: str, name: str) -> list[FieldError]:
    updating, old = parent is not None, (parent or {}).get(name)
    if updating and value == old:
        return []
    errors = list(_final(field, value, old, path, updating=updating))
    if errors or (field.optional and value in (None, "", [])):
        return errors
    errors = list(_further(field, value, path))
    if field.struct is None or (value is None and not field.always):
        return errors
    if not isinstance(value, list):
        return errors + check(
            field.struct, value or {}, (old or ({} if field.always else None)) if updating else None, path
        )
    old_items = {item.get("name"): item for item in old or []} if field.named else {}
    for index, item in enumerate(value):
        before = old_items.get(item.get("name"))
        if before is None or before != item:
            errors += check(field.struct, item, before, f"{path}[{index}]")
    return errors


def _final(field: Field, value: Any, old: Any, path: str, *, updating: bool) -> Iterator[FieldError]:
    """Yield the errors that end the validation of a field."""
    if field.immutable and updating:
        yield immutable(path)
    elif field.kept and updating and (old is None) != (value is None):
        yield invalid(path, None, "field cannot be set or cleared once created")
    elif field.max_items and len(value or ()) > field.max_items:
        yield refusals.too_many(path, len(value), field.max_items)
    elif field.named and updating:
        new_names, old_names = ([item.get("name") for item in items or ()] for items in (value, old))
        for index, name in enumerate(new_names):
            if name not in old_names:
                yield refusals.forbidden(f"{path}[{index}]", "item may not be added")
        for name in old_names:
            if name not in new_names:
                yield refusals.forbidden(path, "item may not be removed")
    elif field.required and value in (None, "", [], 0) and value is not False:
        yield refusals.required(path)


def _further(field: Field, value: Any, path: str) -> Iterator[FieldError]:
    if field.named:
        listed = [item.get("name") for item in value or ()]
        for index, name in enumerate(listed):
            if name in listed[:index]:
                yield refusals.duplicate(f"{path}[{index}]", value[index])
    if field.form:
        yield from names.problems(path, value or "", field.form)
    if field.least is not None and (value or 0) < field.least:
        yield invalid(path, value, f"must be greater than or equal to {field.least}")
    if field.most is not None and (value or 0) > field.most:
        yield invalid(path, value, f"must be less than or equal to {field.most}")
    if field.values and value is not None and value not in field.values:
        yield refusals.not_supported(path, value, sorted(field.values))
