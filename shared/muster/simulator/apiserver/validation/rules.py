"""Declarative validation: the rules of each field as data, and `check`, which applies them.

Source: k8s.io/apimachinery v0.37.1, `pkg/api/validate`. A `Struct` lists the rules of its fields in the order
of the generated Go code; a rule may end the validation of its field. An update validates only the fields that
it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from muster.simulator.apiserver.status import (
    FieldError,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_many,
)
from muster.simulator.apiserver.validation import names

RuleResult = tuple[list[FieldError], bool]
"""The errors of a rule, and whether the remaining rules of the field are skipped."""

VALID: Final[RuleResult] = ([], False)
STOP: Final[RuleResult] = ([], True)

Rule = Callable[[Any, Any, str, bool], RuleResult]
"""Called with the value, the old value (None for unset), the path, and whether this is an update."""


@dataclass(frozen=True)
class Struct:
    """The rules of a Go struct."""

    fields: Mapping[str, Field]
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Field:
    """The rules of a field."""

    rules: tuple[Rule, ...] = ()
    struct: Callable[[], Struct] | None = None
    always: bool = False
    key: str = ""


def check(
    struct: Struct, value: Mapping[str, Any], old: Mapping[str, Any] | None, path: str
) -> list[FieldError]:
    """Return the errors of a struct; `old` is None on creation."""
    updating = old is not None
    errors: list[FieldError] = []
    for rule in struct.rules:
        errors += rule(value, old, path, updating)[0]
    for name, spec in struct.fields.items():
        errors += _check_field(
            spec, value.get(name), (old or {}).get(name), f"{path}.{name}", updating=updating
        )
    return errors


def _check_field(spec: Field, value: Any, old: Any, path: str, *, updating: bool) -> list[FieldError]:
    if updating and value == old:
        return []
    errors: list[FieldError] = []
    for rule in spec.rules:
        rule_errors, stop = rule(value, old, path, updating)
        errors += rule_errors
        if stop:
            return errors
    if spec.struct is None or (value is None and not spec.always):
        return errors
    if isinstance(value, list):
        return errors + _check_items(spec, value, old, path)
    before = (old if old is not None else ({} if spec.always else None)) if updating else None
    return errors + check(spec.struct(), value or {}, before, path)


def _check_items(spec: Field, items: list[Any], old: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    old_items = {item.get(spec.key): item for item in old or []} if spec.key else {}
    for index, item in enumerate(items):
        old_item = old_items.get(item.get(spec.key)) if spec.key else None
        if old_item is not None and old_item == item:
            continue
        if spec.struct is not None:
            errors += check(spec.struct(), item, old_item, f"{path}[{index}]")
    return errors


def _empty(value: Any) -> bool:
    return value is None or value in ("", []) or (value == 0 and not isinstance(value, bool))


def required_value(value: Any, _old: Any, path: str, _updating: bool) -> RuleResult:
    """Rule: the value is set and not zero."""
    return ([required(path)], True) if _empty(value) else VALID


def optional(value: Any, _old: Any, _path: str, _updating: bool) -> RuleResult:
    """Rule: an unset value skips the remaining rules."""
    return STOP if value is None or value in ("", []) else VALID


def immutable_value(value: Any, old: Any, path: str, updating: bool) -> RuleResult:
    """Rule: the value does not change after creation."""
    return ([immutable(path)], True) if updating and value != old else VALID


def not_set_later(value: Any, old: Any, path: str, updating: bool) -> RuleResult:
    """Rule: the field is not set or cleared after creation; its content may change."""
    if not updating:
        return VALID
    if old is None and value is not None:
        return [invalid(path, None, "field cannot be set once created")], True
    if old is not None and value is None:
        return [invalid(path, None, "field cannot be cleared once set")], True
    return VALID


def _rule(broken: Callable[[Any, str], list[FieldError]], *, stop: bool = False) -> Rule:
    """Return the rule of a function that gives the errors of a value, which may end the validation."""

    def rule(value: Any, _old: Any, path: str, _updating: bool) -> RuleResult:
        errors = broken(value, path)
        return errors, stop and bool(errors)

    return rule


def formatted(check_format: names.Check) -> Rule:
    """Rule: the value has a format of `validation.names`."""
    return _rule(lambda value, path: [invalid(path, value, why) for why in check_format(value or "")])


def at_least(limit: int) -> Rule:
    """Rule: the number is at least `limit`."""
    why = f"must be greater than or equal to {limit}"
    return _rule(lambda value, path: [invalid(path, value, why)] if (value or 0) < limit else [])


def at_most(limit: int) -> Rule:
    """Rule: the number is at most `limit`."""
    why = f"must be less than or equal to {limit}"
    return _rule(lambda value, path: [invalid(path, value, why)] if (value or 0) > limit else [])


def max_items(limit: int) -> Rule:
    """Rule: the list has at most `limit` items."""
    return _rule(
        lambda value, path: [too_many(path, len(value), limit)] if len(value or ()) > limit else [], stop=True
    )


def enum(*values: str) -> Rule:
    """Rule: the value is in `values`."""
    return _rule(
        lambda value, path: (
            [not_supported(path, value, sorted(values))] if value not in {None, *values} else []
        )
    )


def same_items(key: str) -> Rule:
    """Rule: no item is added or removed after creation; `key` identifies items."""

    def rule(value: Any, old: Any, path: str, updating: bool) -> RuleResult:
        new_keys, old_keys = ([item.get(key) for item in each or []] for each in (value, old))
        if not updating:
            return VALID
        errors = [
            forbidden(f"{path}[{index}]", "item may not be added")
            for index, name in enumerate(new_keys)
            if name not in old_keys
        ]
        errors += [forbidden(path, "item may not be removed") for name in old_keys if name not in new_keys]
        return errors, bool(errors)

    return rule


def unique(key: str) -> Rule:
    """Rule: the items of a list have different values of `key`."""

    def broken(value: Any, path: str) -> list[FieldError]:
        items = value or []
        seen = [item.get(key) for item in items]
        return [duplicate(f"{path}[{i}]", item) for i, item in enumerate(items) if seen[i] in seen[:i]]

    return _rule(broken)


def union(*members: str) -> Rule:
    """Rule: exactly one of these fields is set; an update that changes which is set is validated."""

    def present(value: Mapping[str, Any] | None) -> list[str]:
        return [member for member in members if (value or {}).get(member) not in (None, [])]

    def rule(value: Any, old: Any, path: str, updating: bool) -> RuleResult:
        found = present(value)
        if len(found) == 1 or (updating and old and found == present(old)):
            return VALID
        return [invalid(path, ", ".join(found), f"must specify exactly one of: {', '.join(members)}")], False

    return rule
