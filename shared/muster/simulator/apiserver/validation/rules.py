"""Rules about fields as data: the Python form of Kubernetes' declarative validation.

Source: k8s.io/apimachinery v0.37.1, `pkg/api/validate`. A `Struct` says which rules hold for each of its
fields, in the order of the generated Go code; a rule may end a field's validation. Data that an update does
not change is not judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

Verdict = tuple[list[FieldError], bool]
"""The errors of a rule, and whether the rest of the field's validation is left out."""

FINE: Final[Verdict] = ([], False)
STOP: Final[Verdict] = ([], True)

Rule = Callable[[Any, Any, str, bool], Verdict]
"""(value, old value, path, whether this is an update) to a verdict; None stands for what is not set."""


@dataclass(frozen=True)
class Struct:
    """The rules of one Go struct.

    Attributes:
        fields: by JSON name.
        whole: rules about the struct itself, such as unions.
    """

    fields: Mapping[str, Field]
    whole: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Field:
    """The rules of one field.

    Attributes:
        rules: in the order in which Kubernetes applies them.
        inside: returns the struct in the field, or in each item of its list; a function because structs nest.
        always: the struct is kept by value in Go, so it is judged even where nothing is set.
        keys: the field by which items of a keyed list are matched with old ones.
    """

    rules: tuple[Rule, ...] = ()
    inside: Callable[[], Struct] | None = None
    always: bool = False
    keys: str = field(default="")


def check(
    struct: Struct, value: Mapping[str, Any], old: Mapping[str, Any] | None, path: str
) -> list[FieldError]:
    """Every broken rule of a struct; `old` is None at creation."""
    updating = old is not None
    errors: list[FieldError] = []
    for rule in struct.whole:
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
        found, ends = rule(value, old, path, updating)
        errors += found
        if ends:
            return errors
    if spec.inside is None or (value is None and not spec.always):
        return errors
    if isinstance(value, list):
        return errors + _check_items(spec, value, old, path)
    before = (old if old is not None else ({} if spec.always else None)) if updating else None
    return errors + check(spec.inside(), value or {}, before, path)


def _check_items(spec: Field, items: list[Any], old: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    before = {item.get(spec.keys): item for item in old or []} if spec.keys else {}
    for index, item in enumerate(items):
        match = before.get(item.get(spec.keys)) if spec.keys else None
        if match is not None and match == item:
            continue
        if spec.inside is not None:
            errors += check(spec.inside(), item, match, f"{path}[{index}]")
    return errors


def _empty(value: Any) -> bool:
    return value is None or value in ("", []) or (value == 0 and not isinstance(value, bool))


def required_value(value: Any, _old: Any, path: str, _updating: bool) -> Verdict:
    """Must be there and not zero."""
    return ([required(path)], True) if _empty(value) else FINE


def optional(value: Any, _old: Any, _path: str, _updating: bool) -> Verdict:
    """Where it is not set, nothing else is judged."""
    return STOP if value is None or value in ("", []) else FINE


def unchanging(value: Any, old: Any, path: str, updating: bool) -> Verdict:
    """Stays as it was created."""
    return ([immutable(path)], True) if updating and value != old else FINE


def not_set_later(value: Any, old: Any, path: str, updating: bool) -> Verdict:
    """Cannot be set or cleared after creation; what is inside may change."""
    if not updating:
        return FINE
    if old is None and value is not None:
        return [invalid(path, None, "field cannot be set once created")], True
    if old is not None and value is None:
        return [invalid(path, None, "field cannot be cleared once set")], True
    return FINE


def formatted(problems: names.Check) -> Rule:
    """Must have a format of `validation.names`."""

    def rule(value: Any, _old: Any, path: str, _updating: bool) -> Verdict:
        return [invalid(path, value, problem) for problem in problems(value or "")], False

    return rule


def at_least(limit: int) -> Rule:
    """A number not below a limit."""

    def rule(value: Any, _old: Any, path: str, _updating: bool) -> Verdict:
        if value is None or value >= limit:
            return FINE
        return [invalid(path, value, f"must be greater than or equal to {limit}")], False

    return rule


def at_most(limit: int) -> Rule:
    """A number not above a limit."""

    def rule(value: Any, _old: Any, path: str, _updating: bool) -> Verdict:
        if value is None or value <= limit:
            return FINE
        return [invalid(path, value, f"must be less than or equal to {limit}")], False

    return rule


def max_items(limit: int) -> Rule:
    """A list not longer than a limit."""

    def rule(value: Any, _old: Any, path: str, _updating: bool) -> Verdict:
        count = len(value or [])
        return ([too_many(path, count, limit)], True) if count > limit else FINE

    return rule


def one_of(*words: str) -> Rule:
    """A word of an enumeration."""

    def rule(value: Any, _old: Any, path: str, _updating: bool) -> Verdict:
        if value is None or value in words:
            return FINE
        return [not_supported(path, value, sorted(words))], False

    return rule


def same_items(key: str) -> Rule:
    """No item may be added or removed after creation."""

    def rule(value: Any, old: Any, path: str, updating: bool) -> Verdict:
        if not updating:
            return FINE
        now = [item.get(key) for item in value or []]
        before = [item.get(key) for item in old or []]
        errors = [
            forbidden(f"{path}[{i}]", "item may not be added") for i, k in enumerate(now) if k not in before
        ]
        errors += [forbidden(path, "item may not be removed") for k in before if k not in now]
        return errors, bool(errors)

    return rule


def unique(key: str) -> Rule:
    """The items of a keyed list have different keys."""

    def rule(value: Any, _old: Any, path: str, _updating: bool) -> Verdict:
        seen: set[Any] = set()
        errors: list[FieldError] = []
        for index, item in enumerate(value or []):
            if item.get(key) in seen:
                errors.append(duplicate(f"{path}[{index}]", item))
            seen.add(item.get(key))
        return errors, False

    return rule


def union(*members: str) -> Rule:
    """Exactly one of these fields is set; judged again only when which one it is changes."""
    allowed = ", ".join(f"`{member}`" for member in members)

    def is_set(value: Mapping[str, Any], member: str) -> bool:
        return value.get(member) is not None and value.get(member) != []

    def rule(value: Any, old: Any, path: str, updating: bool) -> Verdict:
        found = [member for member in members if is_set(value, member)]
        if updating and old and found == [member for member in members if is_set(old, member)]:
            return FINE
        if len(found) > 1:
            shown = "{" + ", ".join(found) + "}"
            return [invalid(path, shown, f"must specify exactly one of: {allowed}")], False
        return FINE if found else ([invalid(path, "", f"must specify one of: {allowed}")], False)

    return rule
