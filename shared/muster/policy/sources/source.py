"""Policy sources, highest first, and the policy that takes effect: that of the first one, broken or not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pydantic.alias_generators import to_camel

from muster.objects.scheduling import Workload
from muster.policy.group_labels import UPSTREAM_TEMPLATE
from muster.policy.model import GroupingFailure
from muster.policy.owners import kind_of
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.sources import schema
from muster.policy.sources.schema import (
    DisruptionMode,
    InvalidPolicyError,
    LockedFields,
    PodGroupPolicy,
    WorkloadPolicy,
    paths_and_groups,
)

ANNOTATION = "muster.dev/pod-group-policy"
SOURCE = "muster.dev/policy-source"
"""Annotation of a Workload: the source of the policy that it was made under."""

LOCKED = "muster.dev/locked-policy"
"""Annotation of a Workload: the fields that were locked when it was made."""

CONFIG_MAP = "muster-policy"
CONFIG_MAP_KEY = "policy"
UPSTREAM_GROUPS = "Trainer, JobSet or the Job controller groups these pods"
LOCKED_KEY = "locked"
"""Key of the administrator's ConfigMap, in Muster's own namespace only."""


class PolicySourceKind(StrEnum):
    """The kinds of policy sources, highest first; below them is the built-in default."""

    STORED = "stored"
    """The Workload that was made under the policy: changes elsewhere count for the next owner."""
    UPSTREAM = "upstream"
    """No policy of Muster's: the runtime asks the Trainer, JobSet or the Job controller for groups."""
    OWNER = "owner"
    RUNTIME = "runtime"
    RUNTIME_SPEC = "runtime spec"
    NAMESPACE = "namespace"
    CLUSTER = "cluster"
    """The administrator's ConfigMap, in Muster's own namespace."""
    LOCKED = "locked"
    """No policy: the fields that the administrator locked; beside a policy of any other kind."""


@dataclass(frozen=True)
class PolicySource:
    """A policy and its source."""

    kind: PolicySourceKind
    where: str
    content: str | Mapping[str, Any]


@dataclass(frozen=True)
class Locks:
    """The locked fields and who locked them."""

    where: str
    fields: LockedFields

    def refused(self, path: str, value: str) -> InvalidPolicyError:
        """Return the error of a policy that sets a locked field otherwise."""
        return InvalidPolicyError(path, f"is locked to {value} by {self.where}")

    def as_text(self) -> str:
        """Return the locked fields in one line: `disruptionMode: all, onFailure: Hold`."""
        values = self.fields.model_dump(by_alias=True, exclude_none=True)
        if self.fields.disruption_mode is not None:
            values["disruptionMode"] = _name(self.fields.disruption_mode)
        return ", ".join(f"{name}: {value}" for name, value in values.items())


@dataclass(frozen=True)
class EffectivePolicy:
    """The policy that takes effect, and its source.

    Attributes:
        workload: groups of scheduling.k8s.io; the default if another scheduler groups the pods.
        other: that scheduler, as the policy names it, or `upstream`; "" if there is none.
        queue: the queue in that scheduler; "" for its default.
        kept: whether groups were made under it already; after scaling they need not match it.
        locks: the fields that the administrator locked; None if there are none.
        failure: why it cannot be used; None if it can.
    """

    where: str
    workload: WorkloadPolicy = field(default_factory=WorkloadPolicy)
    other: str = ""
    queue: str = ""
    kept: bool = False
    locks: Locks | None = None
    failure: GroupingFailure | None = None

    @property
    def holds(self) -> bool:
        """Whether pods stay gated when their groups cannot be made: `onFailure: Hold`.

        Under locks those of an invalid policy stay, too: fallback PodGroups are weaker than a lock.
        """
        if self.failure is not None and self.locks is not None and self.locks.fields.on_failure != "Basic":
            return True
        return self.workload.on_failure == "Hold"


def sources_of_runtime(runtime: Mapping[str, Any]) -> tuple[PolicySource, ...]:
    """Return the policy sources of a (Cluster)TrainingRuntime, highest first.

    Upstream groups all pods of its TrainJobs by KEP-3015 (`spec.scheduling`), KEP-969, or an annotation.
    """
    metadata, spec = runtime.get("metadata") or {}, runtime.get("spec") or {}
    jobset = spec.get("template") or {}
    annotations = (jobset.get("metadata") or {}).get("annotations") or {}
    named = f"{runtime.get('kind', 'runtime')} {metadata.get('name', '')}"
    sources: list[tuple[PolicySourceKind, str, Any]] = []
    for path, value in (
        ("spec.scheduling", spec.get("scheduling")),
        ("spec.template.spec.scheduling", (jobset.get("spec") or {}).get("scheduling")),
        (f"spec.template.metadata.annotations: {UPSTREAM_TEMPLATE}", annotations.get(UPSTREAM_TEMPLATE)),
    ):
        if value is not None and not sources:
            sources.append((PolicySourceKind.UPSTREAM, path, ""))
    text = (metadata.get("annotations") or {}).get(ANNOTATION)
    if text is not None:
        sources.append((PolicySourceKind.RUNTIME, f"annotation {ANNOTATION}", text))
    if spec.get("podGroupPolicy"):
        sources.append((PolicySourceKind.RUNTIME_SPEC, "spec.podGroupPolicy", spec["podGroupPolicy"]))
    return tuple(PolicySource(kind, f"{path} of {named}", found) for kind, path, found in sources)


def source_of_config_map(body: Mapping[str, Any], kind: PolicySourceKind) -> tuple[PolicySource, ...]:
    """Return the policy of a ConfigMap `muster-policy`; empty if it has none."""
    return _of_key(body, CONFIG_MAP_KEY, kind)


def locked_fields(body: Mapping[str, Any]) -> tuple[PolicySource, ...]:
    """Return the locked fields of the administrator's ConfigMap; empty if it has none."""
    return _of_key(body, LOCKED_KEY, PolicySourceKind.LOCKED)


def _of_key(body: Mapping[str, Any], key: str, kind: PolicySourceKind) -> tuple[PolicySource, ...]:
    data = body.get("data") or {}
    if key not in data:
        return ()
    metadata = body["metadata"]
    where = f"ConfigMap {metadata['namespace']}/{metadata['name']}, key {key}"
    return (PolicySource(kind, where, data[key]),)


def source_of_workload(workload: Workload) -> tuple[PolicySource, ...]:
    """Return policy and locked fields that Muster's Workload was created under; empty for the default."""
    annotations = workload.metadata.annotations
    where = str(workload.ref)
    sources = []
    if LOCKED in annotations:
        sources.append(PolicySource(PolicySourceKind.LOCKED, where, annotations[LOCKED]))
    if ANNOTATION in annotations:
        where = annotations.get(SOURCE, where)
        sources.append(PolicySource(PolicySourceKind.STORED, where, annotations[ANNOTATION]))
    return tuple(sources)


def policy_annotations(policy: EffectivePolicy) -> dict[str, str]:
    """Return the annotations that keep a policy on the Workload made under it."""
    content = policy.workload.model_dump(by_alias=True, exclude_unset=True)
    annotations = {ANNOTATION: json.dumps({"workload": content}), SOURCE: policy.where}
    if policy.locks is not None:
        annotations[LOCKED] = json.dumps(policy.locks.fields.model_dump(by_alias=True, exclude_none=True))
    return annotations


DEFAULT = EffectivePolicy("the built-in default")
_LOCKED_AS_THEY_ARE = ("on_failure", "on_scale", "on_members_lost", "members_lost_seconds")
"""The locked fields that a policy has under the same name."""
_RUNTIMES = frozenset({PolicySourceKind.RUNTIME, PolicySourceKind.RUNTIME_SPEC})


def resolve_policy(sources: tuple[PolicySource, ...], owner: OwnerObject | None = None) -> EffectivePolicy:
    """Return the policy of the first source, or the built-in default, with the locked fields."""
    first = next((source for source in sources if source.kind != PolicySourceKind.LOCKED), None)
    if first is not None and first.kind == PolicySourceKind.UPSTREAM:
        return EffectivePolicy(first.where, other="upstream")
    policy = DEFAULT if first is None else _of_source(first, owner)
    locked = next((source for source in sources if source.kind == PolicySourceKind.LOCKED), None)
    if locked is None:
        return policy
    try:
        locks = Locks(locked.where, schema.parse_locked(str(locked.content)))
    except InvalidPolicyError as error:
        return invalid_policy(locked.where, str(error), hold=True)
    return _under_locks(policy, locks)


def _under_locks(policy: EffectivePolicy, locks: Locks) -> EffectivePolicy:
    if policy.other:
        return policy
    refused = (
        [] if policy.kept or policy.failure else list(map(str, locked_otherwise(policy.workload, locks)))
    )
    if refused:
        policy = invalid_policy(policy.where, schema.together(refused))
    return replace(policy, workload=with_locked(policy.workload, locks), locks=locks)


def _of_source(source: PolicySource, owner: OwnerObject | None) -> EffectivePolicy:
    content, stored = source.content, source.kind == PolicySourceKind.STORED
    try:
        policy = schema.parse(content, stored=stored) if isinstance(content, str) else schema.check(content)
    except InvalidPolicyError as error:
        return _invalid(source, str(error))
    if policy.workload is not None:
        return EffectivePolicy(source.where, policy.workload, kept=stored)
    if policy.kai_scheduler is not None and source.kind in _RUNTIMES:
        queue = policy.kai_scheduler.queue or ""
        return EffectivePolicy(source.where, other="kaiScheduler", queue=queue)
    other = next(iter(policy.model_dump(by_alias=True, exclude_none=True)))
    if policy.kai_scheduler is None and source.kind == PolicySourceKind.RUNTIME_SPEC:
        return EffectivePolicy(source.where, other=other)
    return _invalid(source, f"{other}: {_how_to_choose(policy, owner)}")


def _how_to_choose(policy: PodGroupPolicy, owner: OwnerObject | None) -> str:
    """Return how to hand pods to another scheduler, in the one place that is read before they exist."""
    kind = None if owner is None else kind_of(owner)
    ref = None if kind is None else kind.runtime(owner)
    if owner is not None and ref is None and policy.kai_scheduler is not None:
        return (
            f"comes too late for an existing {owner.kind}; create it with schedulerName: kai-scheduler "
            "and the label kai.scheduler/queue in its pod templates"
        )
    runtime = "clustertrainingruntime NAME" if ref is None else f"{ref.kind.lower()} {ref.name}"
    runtime += f" -n {ref.namespace}" if ref is not None and ref.namespace else ""
    fields = policy.model_dump(by_alias=True, exclude_none=True)
    if policy.kai_scheduler is not None:
        return (
            "only a runtime can choose another scheduler, before the pods exist: "
            f"kubectl annotate --overwrite {runtime} '{ANNOTATION}={json.dumps(fields)}'"
        )
    return (
        "the Trainer reads it in spec.podGroupPolicy of a runtime only: "
        f"kubectl patch {runtime} --type merge -p '{json.dumps({'spec': {'podGroupPolicy': fields}})}'"
    )


def invalid_policy(where: str, message: str, *, hold: bool = False) -> EffectivePolicy:
    """Return a policy that cannot be used, by its source and fault."""
    failure = GroupingFailure(Reason.INVALID_POLICY, f"{where}: {message}")
    workload = WorkloadPolicy(onFailure="Hold") if hold else WorkloadPolicy()
    return EffectivePolicy(where, workload, failure=failure)


def _invalid(source: PolicySource, message: str) -> EffectivePolicy:
    return invalid_policy(source.where, message, hold=schema.asks_to_hold(source.content))


def locked_otherwise(policy: WorkloadPolicy, locks: Locks) -> Iterator[InvalidPolicyError]:
    """Yield an error for each locked field that a policy sets otherwise."""
    for name in _LOCKED_AS_THEY_ARE:
        locked = getattr(locks.fields, name)
        if locked and name in policy.model_fields_set and getattr(policy, name) != locked:
            yield locks.refused(f"workload.{to_camel(name)}", locked)
    if policy.on_timeout == "Basic":  # pods one by one, like onFailure: Basic, whatever minCount says
        held = locks.fields.on_failure == "Hold" and "onFailure: Hold"
        whole = locks.fields.min_count and f"minCount: {locks.fields.min_count}"
        if held or whole:
            yield locks.refused("workload.onTimeout", f"Report or Suspend, by {held or whole}")
    mode = locks.fields.disruption_mode
    for path, group in paths_and_groups(policy.groups) if mode else ():
        if group.disruption_mode not in (None, mode) and mode is not None:
            yield locks.refused(f"{path}.disruptionMode", _name(mode))


def with_locked(policy: WorkloadPolicy, locks: Locks) -> WorkloadPolicy:
    """Return the policy with the locked values of its own fields."""
    locked = {name: getattr(locks.fields, name) for name in _LOCKED_AS_THEY_ARE}
    return policy.model_copy(update={name: value for name, value in locked.items() if value})


def _name(mode: DisruptionMode) -> str:
    return "all" if mode.all is not None else "single"
