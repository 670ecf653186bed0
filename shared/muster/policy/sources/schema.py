"""The schema of `PodGroupPolicy`, with the field names of the API; unknown fields are refused.

All policy sources (annotation, runtime, ConfigMap) have this schema. The limits are those of
scheduling.k8s.io (pkg/apis/scheduling, Kubernetes v1.37.1), so that a policy fails here, with a path, and not
in the API server. Docstrings of its models are published in eventing/schemas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from muster.objects.faults import fault
from muster.policy.sources import strict_yaml
from muster.policy.sources.field_types import Count, DnsLabel, LabelKey, LabelValue, Subdomain

_NAME_LENGTH = 63
"""The most characters of a tenant's key in a path; those of the schema have up to 25."""

_KEPT_POLICIES = 16
"""Texts that are kept parsed: two for each of the events in work at a time, and some for a sweep."""


class InvalidPolicyError(Exception):
    """A policy is invalid.

    Attributes:
        path: the path of the field: `workload.groups[1].schedulingPolicy`.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False)


_ONE_FIELD = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})


class Empty(_Strict):
    """`{}`."""


class GangPolicy(_Strict):
    """All or nothing: `minCount` pods, in a group with children `minGroupCount` child groups."""

    min_count: Count | None = None
    min_group_count: Count | None = None


class SchedulingPolicyChoice(_Strict):
    """Exactly one of `gang` and `basic`."""

    model_config = _ONE_FIELD

    gang: GangPolicy | None = None
    basic: Empty | None = None

    @model_validator(mode="after")
    def _exactly_one_is_set(self) -> SchedulingPolicyChoice:
        _exactly_one(self, "gang", "basic")
        return self


class TopologyConstraint(_Strict):
    """All pods within one value of a node label."""

    key: LabelKey


class SchedulingConstraints(_Strict):
    """The topology domain that all pods of a group must share."""

    topology: list[TopologyConstraint] = Field(max_length=1)


class DisruptionMode(_Strict):
    """Exactly one of `all` and `single`."""

    model_config = _ONE_FIELD

    all: Empty | None = None
    single: Empty | None = None

    @model_validator(mode="after")
    def _exactly_one_is_set(self) -> DisruptionMode:
        _exactly_one(self, "all", "single")
        return self


class ResourceClaim(_Strict):
    """A claim that the pods of a group share; exactly one of the two sources."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 2, "maxProperties": 2})

    name: DnsLabel
    resource_claim_name: Subdomain | None = None
    resource_claim_template_name: Subdomain | None = None

    @model_validator(mode="after")
    def _exactly_one_is_set(self) -> ResourceClaim:
        _exactly_one(self, "resourceClaimName", "resourceClaimTemplateName")
        return self


class GroupPolicy(_Strict):
    """One group: of pods, or with `groups` of groups.

    Attributes:
        name: the group label of its pods; unique in the tree.
        replicated_jobs: which pod templates mark_runtime marks with it.
        per: `Job`: one PodGroup, or with `groups` one CompositePodGroup, for each Job.
        size: one for each block of that many completion indexes; with `per` for each block of each Job.
        leader: the group takes completion index 0 of its replicatedJobs.
    """

    name: DnsLabel
    replicated_jobs: list[DnsLabel] = Field(default_factory=list)
    per: Literal["Job"] | None = None
    size: Count | None = None
    leader: bool = False
    scheduling_policy: SchedulingPolicyChoice | None = None
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    preemption_policy: Literal["Never", "PreemptLowerPriority"] | None = None
    resource_claims: list[ResourceClaim] = Field(default_factory=list, max_length=4)
    groups: list[GroupPolicy] = Field(default_factory=list, max_length=8)

    @model_validator(mode="after")
    def _check_level(self) -> GroupPolicy:
        gang = self.scheduling_policy.gang if self.scheduling_policy else None
        if self.name == "none":
            raise _at("name", "none is reserved for pods in no group")
        if self.groups:
            leaf_only = ("replicatedJobs", "leader", "resourceClaims")
            for name in filter(lambda name: getattr(self, _snake(name)), leaf_only):
                raise _at(name, "is only for groups of pods")
            if gang and gang.min_count:
                raise _at("schedulingPolicy.gang.minCount", "a group of groups takes minGroupCount")
        elif gang and gang.min_group_count:
            raise _at("schedulingPolicy.gang.minGroupCount", "a group of pods takes minCount")
        if self.size and self.leader:
            raise _at("leader", "set either size or leader")
        claims = [claim.name for claim in self.resource_claims]
        if len({*claims}) < len(claims):
            raise _at("resourceClaims", f"two claims are called {max(claims, key=claims.count)}")
        return self


_MAX_TIMEOUT = 31_536_000
"""A year, in seconds."""


class WorkloadPolicy(_Strict):
    """Groups of scheduling.k8s.io; `{}` means the defaults.

    Attributes:
        groups: the roots of the tree; the groups that the labels name if empty.
        on_scale: whether minCount follows a change of size, or the change is only reported.
        on_failure: whether pods whose groups cannot be made run one by one, or keep their gate.
        scheduling_timeout_seconds: how long a gang may wait for room; unlimited if unset.
        on_timeout: whether that is only reported, the pods run one by one, or the owner is suspended.
    """

    groups: list[GroupPolicy] = Field(default_factory=list, max_length=8)
    on_scale: Literal["Follow", "Flag"] = "Follow"
    on_failure: Literal["Basic", "Hold"] = "Basic"
    scheduling_timeout_seconds: int | None = Field(default=None, ge=1, le=_MAX_TIMEOUT)
    on_timeout: Literal["Report", "Basic", "Suspend"] = "Report"

    @model_validator(mode="after")
    def _on_timeout_has_a_timeout(self) -> WorkloadPolicy:
        if "on_timeout" in self.model_fields_set and self.scheduling_timeout_seconds is None:
            raise _at("onTimeout", "needs schedulingTimeoutSeconds")
        return self

    @property
    def sets_preemption(self) -> bool:
        """Whether a group has a preemptionPolicy."""
        groups = list(self.groups)
        while groups:
            group = groups.pop()
            if group.preemption_policy is not None:
                return True
            groups += group.groups
        return False


class LockedFields(_Strict):
    """Fields that the administrator locked: every policy has these values and may not set others."""

    on_failure: Literal["Basic", "Hold"] | None = None
    on_scale: Literal["Follow", "Flag"] | None = None
    disruption_mode: DisruptionMode | None = None
    min_count: Literal["All"] | None = None


class KaiScheduler(_Strict):
    """KAI Scheduler groups the pods; `queue` is one of its queues."""

    queue: LabelValue | None = None


class PodGroupPolicy(_Strict):
    """Exactly one source of groups."""

    model_config = _ONE_FIELD

    workload: WorkloadPolicy | None = None
    kai_scheduler: KaiScheduler | None = None
    coscheduling: dict[str, Any] | None = None
    volcano: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _exactly_one_is_set(self) -> PodGroupPolicy:
        names = ("workload", "kaiScheduler", "coscheduling", "volcano")
        given = [name for name in names if getattr(self, _snake(name)) is not None]
        if len(given) != 1:
            raise _at(given[1] if given else "workload", f"set exactly one of {', '.join(names)}")
        return self


def parse(text: str, *, stored: bool = False) -> PodGroupPolicy:
    """Return the policy in the YAML or JSON text of an annotation or ConfigMap.

    The last few texts are kept parsed, because a step needs the policy several times for one event.

    Args:
        text: the text.
        stored: whether Muster wrote it on a Workload, as JSON that is longer than the author's YAML.

    Raises:
        InvalidPolicyError: it is no YAML, or no valid policy; with the path of the first invalid field.
    """
    result = _parsed(text, strict_yaml.STORED if stored else strict_yaml.POLICY)
    if isinstance(result, _Refusal):
        raise InvalidPolicyError(result.path, result.message)
    return result


@lru_cache(maxsize=_KEPT_POLICIES)
def parse_locked(text: str) -> LockedFields:
    """Return the locked fields in the YAML or JSON text of the key `locked`.

    Raises:
        InvalidPolicyError: it is no YAML, or has other fields or values; with the path of the first.
    """
    try:
        data = strict_yaml.load(text)
    except strict_yaml.BadYamlError as error:
        raise InvalidPolicyError("", f"cannot be read as YAML: {error}") from error
    if not isinstance(data, Mapping):
        raise InvalidPolicyError("", "locked fields are a mapping such as {onFailure: Hold}")
    try:
        return LockedFields.model_validate(data)
    except ValidationError as error:
        raise InvalidPolicyError(*_first(error)) from error


def check(data: Any) -> PodGroupPolicy:
    """Return the policy of parsed data, such as the field of a runtime.

    Raises:
        InvalidPolicyError: it is no valid policy; with the path of the first invalid field.
    """
    try:
        strict_yaml.check_data(data)
    except strict_yaml.BadYamlError as error:
        raise InvalidPolicyError("", str(error)) from error
    result = _validated(data)
    if isinstance(result, _Refusal):
        raise InvalidPolicyError(result.path, result.message)
    return result


def asks_to_hold(content: str | Mapping[str, Any]) -> bool:
    """Whether a policy has `onFailure: Hold`, also if it is invalid elsewhere; false if it is no YAML.

    With Hold the pods must not run without their gang, so an error in another field must not let them run.
    """
    if not isinstance(content, str):
        return _holds(content)
    result = _parsed(content, strict_yaml.STORED)
    if isinstance(result, _Refusal):
        return result.holds
    return result.workload is not None and result.workload.on_failure == "Hold"


@dataclass(frozen=True)
class _Refusal:
    """Why content is no valid policy, as kept in the cache: an exception would collect tracebacks there.

    Attributes:
        path: the path of the first invalid field.
        message: what is wrong with it.
        holds: whether the policy has `onFailure: Hold` all the same.
    """

    path: str
    message: str
    holds: bool = False


def _parsed(text: str, bounds: strict_yaml.TextLimits) -> PodGroupPolicy | _Refusal:
    try:
        strict_yaml.check_size(text, bounds)  # before the cache, which would keep the text
        return _parsed_text(text)
    except strict_yaml.BadYamlError as error:
        return _Refusal("", f"cannot be read as YAML: {error}")


@lru_cache(maxsize=_KEPT_POLICIES)
def _parsed_text(text: str) -> PodGroupPolicy | _Refusal:
    try:
        return _validated(strict_yaml.load(text, strict_yaml.STORED))
    except strict_yaml.BadYamlError as error:
        return _Refusal("", f"cannot be read as YAML: {error}")


forget_parsed_policies = _parsed_text.cache_clear
"""Empty the cache of parsed texts, for tests that count."""


def _validated(data: Any) -> PodGroupPolicy | _Refusal:
    if not isinstance(data, Mapping):
        return _Refusal("", "a policy is a mapping such as {workload: {}}")
    try:
        return PodGroupPolicy.model_validate(data)
    except ValidationError as error:
        return _Refusal(*_first(error), _holds(data))


def _first(error: ValidationError) -> tuple[str, str]:
    """Return the path and the message of the first error."""
    first = error.errors(include_url=False)[0]
    inner = str(first.get("ctx", {}).get("field", ""))
    return _path((*first["loc"], inner) if inner else first["loc"]), _message(first)


def _holds(data: Any) -> bool:
    workload = data.get("workload") if isinstance(data, Mapping) else None
    return isinstance(workload, Mapping) and workload.get("onFailure") == "Hold"


def _exactly_one(model: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(model, _snake(name)) is not None]
    if len(given) != 1:
        raise ValueError(
            f"set exactly one of {', '.join(names)}" + (f"; given: {', '.join(given)}" if given else "")
        )


def _at(field: str, message: str) -> PydanticCustomError:
    """Return a validation error with the field of the model that it is about."""
    return PydanticCustomError("policy", "{message}", {"field": field, "message": message})


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def _path(location: Sequence[str | int]) -> str:
    path = ""
    for part in location:
        name = part if isinstance(part, int) else strict_yaml.shortened(part, _NAME_LENGTH)
        path += f"[{name}]" if isinstance(part, int) else f".{name}" if path else str(name)
    return path


def _message(error: Mapping[str, Any]) -> str:
    if error["type"] == "string_pattern_mismatch":
        return strict_yaml.shortened(f"{error['input']!r} is not a valid name")
    return strict_yaml.shortened(fault(error))
