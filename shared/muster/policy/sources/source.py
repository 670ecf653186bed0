"""Policy sources, highest first, and the policy that takes effect: that of the first source there is.

A broken policy never falls through to a lower source: its author did not ask for the default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from muster.objects.scheduling import Workload
from muster.policy import group_labels
from muster.policy.model import GroupingFailure
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.sources import schema
from muster.policy.sources.locks import Locks, check_locked, with_locked
from muster.policy.sources.other_schedulers import way_to_kai, way_to_trainer
from muster.policy.sources.schema import InvalidPolicyError, WorkloadPolicy

ANNOTATION = "muster.dev/pod-group-policy"
SOURCE = "muster.dev/policy-source"
"""Annotation of a Workload: the source of the policy that it was made under."""

LOCKED = "muster.dev/locked-policy"
"""Annotation of a Workload: the fields that were locked when it was made."""

CONFIG_MAP = "muster-policy"
CONFIG_MAP_KEY = "policy"
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
class EffectivePolicy:
    """The policy that takes effect, and its source.

    Attributes:
        where: the source, for messages.
        workload: groups of scheduling.k8s.io; None if another scheduler groups the pods.
        other: that scheduler, as the policy names it, or `upstream`; "" if there is none.
        queue: the queue in that scheduler; "" for its default.
        kept: whether groups were made under it already; after scaling they need not match it.
        locks: the fields that the administrator locked; None if there are none.
        held: whether pods are held whatever `onFailure` says: under locks an invalid policy is not a way out.
    """

    where: str
    workload: WorkloadPolicy | None
    other: str = ""
    queue: str = ""
    kept: bool = False
    locks: Locks | None = None
    held: bool = False

    @property
    def holds(self) -> bool:
        """Whether pods stay gated when their groups cannot be made: `onFailure: Hold`, or a lock."""
        return self.held or (self.workload is not None and self.workload.on_failure == "Hold")


def sources_of_runtime(runtime: Mapping[str, Any]) -> tuple[PolicySource, ...]:
    """Return the policy sources of a (Cluster)TrainingRuntime, highest first."""
    metadata = runtime.get("metadata") or {}
    named = f"{runtime.get('kind', 'runtime')} {metadata.get('name', '')}"
    sources = [
        PolicySource(PolicySourceKind.UPSTREAM, f"{field} of {named}", "")
        for field in _upstream_fields(runtime)
    ][:1]
    text = (metadata.get("annotations") or {}).get(ANNOTATION)
    if text is not None:
        sources.append(PolicySource(PolicySourceKind.RUNTIME, f"annotation {ANNOTATION} of {named}", text))
    field = (runtime.get("spec") or {}).get("podGroupPolicy")
    if field:
        sources.append(PolicySource(PolicySourceKind.RUNTIME_SPEC, f"spec.podGroupPolicy of {named}", field))
    return tuple(sources)


def _upstream_fields(runtime: Mapping[str, Any]) -> Iterator[str]:
    """Yield the fields by which a runtime asks upstream to group all pods of its TrainJobs.

    KEP-3015 puts `spec.scheduling` on the runtime, KEP-969 on the JobSet; released CRDs prune both.
    """
    spec = runtime.get("spec") or {}
    jobset = spec.get("template") or {}
    if spec.get("scheduling") is not None:
        yield "spec.scheduling"
    if (jobset.get("spec") or {}).get("scheduling") is not None:
        yield "spec.template.spec.scheduling"
    if group_labels.UPSTREAM_TEMPLATE in ((jobset.get("metadata") or {}).get("annotations") or {}):
        yield f"spec.template.metadata.annotations: {group_labels.UPSTREAM_TEMPLATE}"


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
    if policy.workload is None:
        return {}
    content = policy.workload.model_dump(by_alias=True, exclude_unset=True)
    annotations = {ANNOTATION: json.dumps({"workload": content}), SOURCE: policy.where}
    if policy.locks is not None:
        annotations[LOCKED] = json.dumps(policy.locks.fields.model_dump(by_alias=True, exclude_none=True))
    return annotations


DEFAULT = EffectivePolicy("the built-in default", WorkloadPolicy())
_HOLDING = WorkloadPolicy(onFailure="Hold")
_RUNTIMES = frozenset({PolicySourceKind.RUNTIME, PolicySourceKind.RUNTIME_SPEC})


@dataclass(frozen=True)
class InvalidPolicy:
    """A policy that cannot be used."""

    failure: GroupingFailure
    policy: EffectivePolicy


def resolve_policy(
    sources: tuple[PolicySource, ...], owner: OwnerObject | None = None
) -> EffectivePolicy | InvalidPolicy:
    """Return the policy of the first source, or the built-in default, with the locked fields."""
    first = next((source for source in sources if source.kind != PolicySourceKind.LOCKED), None)
    if first is not None and first.kind == PolicySourceKind.UPSTREAM:
        return EffectivePolicy(first.where, None, "upstream")
    policy = DEFAULT if first is None else _of_source(first, owner)
    locked = next((source for source in sources if source.kind == PolicySourceKind.LOCKED), None)
    if locked is None:
        return policy
    try:
        locks = Locks(locked.where, schema.parse_locked(str(locked.content)))
    except InvalidPolicyError as error:
        return invalid_policy(locked.where, str(error), _HOLDING)
    return _under_locks(policy, locks)


def _under_locks(policy: EffectivePolicy | InvalidPolicy, locks: Locks) -> EffectivePolicy | InvalidPolicy:
    if isinstance(policy, InvalidPolicy):
        return _invalid_under(policy, locks)
    if policy.workload is None:
        return policy
    try:
        if not policy.kept:
            check_locked(policy.workload, locks)
    except InvalidPolicyError as error:
        return _invalid_under(invalid_policy(policy.where, str(error)), locks)
    return replace(policy, workload=with_locked(policy.workload, locks), locks=locks)


def _invalid_under(invalid: InvalidPolicy, locks: Locks) -> InvalidPolicy:
    workload = with_locked(invalid.policy.workload or WorkloadPolicy(), locks)
    policy = replace(invalid.policy, workload=workload, held=locks.hold_invalid, locks=locks)
    return replace(invalid, policy=policy)


def _of_source(source: PolicySource, owner: OwnerObject | None) -> EffectivePolicy | InvalidPolicy:
    content, stored = source.content, source.kind == PolicySourceKind.STORED
    try:
        policy = schema.parse(content, stored=stored) if isinstance(content, str) else schema.check(content)
    except InvalidPolicyError as error:
        return _invalid(source, str(error))
    if policy.workload is not None:
        return EffectivePolicy(source.where, policy.workload, kept=stored)
    if policy.kai_scheduler is not None:
        if source.kind in _RUNTIMES:
            return EffectivePolicy(source.where, None, "kaiScheduler", policy.kai_scheduler.queue or "")
        advice = way_to_kai(policy.kai_scheduler.queue or "", owner, ANNOTATION)
        return _invalid(source, f"kaiScheduler: {advice}")
    other = "volcano" if policy.coscheduling is None else "coscheduling"
    if source.kind == PolicySourceKind.RUNTIME_SPEC:
        return EffectivePolicy(source.where, None, other)
    fields = policy.model_dump(by_alias=True, exclude_none=True)
    return _invalid(source, f"{other}: {way_to_trainer(fields, owner)}")


def invalid_policy(where: str, message: str, held: WorkloadPolicy | None = None) -> InvalidPolicy:
    """Return a policy that cannot be used, by its source and fault."""
    failure = GroupingFailure(Reason.INVALID_POLICY, f"{where}: {message}")
    return InvalidPolicy(failure, EffectivePolicy(where, held or WorkloadPolicy()))


def _invalid(source: PolicySource, message: str) -> InvalidPolicy:
    return invalid_policy(source.where, message, _HOLDING if schema.asks_to_hold(source.content) else None)
