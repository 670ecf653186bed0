"""Fields of policies that the administrator locked, in the key `locked` of his ConfigMap.

A policy that does not set such a field gets its value; one that sets another value is invalid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muster.policy.sources.schema import (
    DisruptionMode,
    GroupPolicy,
    InvalidPolicyError,
    LockedFields,
    WorkloadPolicy,
)


@dataclass(frozen=True)
class Locks:
    """The locked fields and who locked them."""

    where: str
    fields: LockedFields

    @property
    def hold_invalid(self) -> bool:
        """Whether pods of an invalid policy keep their gate: fallback PodGroups are weaker than a lock."""
        return self.fields.on_failure != "Basic"

    def refused(self, path: str, value: str) -> InvalidPolicyError:
        """Return the error of a policy that sets a locked field otherwise."""
        return InvalidPolicyError(path, f"is locked to {value} by {self.where}")

    def as_text(self) -> str:
        """Return the locked fields in one line: `disruptionMode: all, onFailure: Hold`."""
        fields = self.fields
        values = {
            "onFailure": fields.on_failure,
            "onScale": fields.on_scale,
            "disruptionMode": fields.disruption_mode and _name(fields.disruption_mode),
            "minCount": fields.min_count,
        }
        return ", ".join(f"{name}: {value}" for name, value in values.items() if value)


def locked_otherwise(policy: WorkloadPolicy, locks: Locks) -> InvalidPolicyError | None:
    """Return the error of a policy that sets a locked field otherwise, or None."""
    for name, path in (("on_failure", "onFailure"), ("on_scale", "onScale")):
        locked = getattr(locks.fields, name)
        if locked and name in policy.model_fields_set and getattr(policy, name) != locked:
            return locks.refused(f"workload.{path}", locked)
    if policy.on_timeout == "Basic":  # pods one by one, like onFailure: Basic, whatever minCount says
        held = locks.fields.on_failure == "Hold" and "onFailure: Hold"
        whole = locks.fields.min_count and f"minCount: {locks.fields.min_count}"
        if held or whole:
            return locks.refused("workload.onTimeout", f"Report or Suspend, by {held or whole}")
    mode = locks.fields.disruption_mode
    for path, group in _with_all_below(policy.groups, "workload") if mode else ():
        if group.disruption_mode not in (None, mode) and mode is not None:
            return locks.refused(f"{path}.disruptionMode", _name(mode))
    return None


def with_locked(policy: WorkloadPolicy, locks: Locks) -> WorkloadPolicy:
    """Return the policy with the locked onFailure and onScale."""
    locked = {name: getattr(locks.fields, name) for name in ("on_failure", "on_scale")}
    return policy.model_copy(update={name: value for name, value in locked.items() if value})


def _with_all_below(groups: Sequence[GroupPolicy], above: str) -> Iterator[tuple[str, GroupPolicy]]:
    for index, group in enumerate(groups):
        path = f"{above}.groups[{index}]"
        yield path, group
        yield from _with_all_below(group.groups, path)


def _name(mode: DisruptionMode) -> str:
    return "all" if mode.all is not None else "single"
