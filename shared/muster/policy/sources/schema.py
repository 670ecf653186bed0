"""The schema of `PodGroupPolicy`, with the field names of the API; unknown fields are refused.

All policy sources (annotation, runtime, ConfigMap) have this schema. The limits are those of
scheduling.k8s.io (pkg/apis/scheduling, Kubernetes v1.37.1), so that a policy fails here, with a path, and not
in the API server. Docstrings of its models are published in eventing/schemas.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic.alias_generators import to_camel, to_snake
from pydantic_core import PydanticCustomError

from muster.objects.meta import fault, path_of
from muster.objects.scheduling import MOST_MEMBERS
from muster.objects.yaml_files import SafeLoader
from muster.policy.limits import MESSAGE_LENGTH, POLICY_BYTES, POLICY_DEPTH, STORED_POLICY_BYTES

_NAME_LENGTH = 63
"""The most characters of a tenant's key in a path; those of the schema have up to 25."""

_MOST_FAULTS, _FAULTS_LENGTH = 10, 800
"""The most faults of a policy in a message, and their characters: with its source they fit into an Event."""

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}([.]{_LABEL})*"
_QUALIFIED = "[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?"


DnsLabel = Annotated[str, StringConstraints(pattern=f"^{_LABEL}$", max_length=63)]
Subdomain = Annotated[str, StringConstraints(pattern=f"^{_SUBDOMAIN}$", max_length=253)]
LabelKey = Annotated[str, StringConstraints(pattern=f"^({_SUBDOMAIN}/)?{_QUALIFIED}$", max_length=317)]
LabelValue = Annotated[str, StringConstraints(pattern=f"^{_QUALIFIED}$")]
Count = Annotated[int, Field(ge=1, le=MOST_MEMBERS, strict=True)]


class InvalidPolicyError(Exception):
    """A policy is invalid."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False)
    absent_if_empty: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        """Drop the fields of the schema that are null, and those that say nothing if they are `{}`."""
        if not isinstance(data, Mapping):
            return data
        absent = {name for name, value in data.items() if value is None} & _allowed(cls).keys()
        absent |= {name for name in cls.absent_if_empty if data.get(name) == {}}
        return {name: value for name, value in data.items() if name not in absent}


def _allowed(model: type[_Strict]) -> dict[str, Any]:
    """Return the types of the fields of a model by their names in the API."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


class _OneOf(_Strict):
    choices: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def _exactly_one_is_set(self) -> Self:
        given = [name for name in self.choices if getattr(self, to_snake(name)) is not None]
        if len(given) != 1:
            also = f"; given: {', '.join(given)}" if given else ""
            raise ValueError(f"set exactly one of {', '.join(self.choices)}{also}")
        return self


_Model = TypeVar("_Model", bound=_Strict)
_ONE_FIELD = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})


class Empty(_Strict):
    """`{}`."""


class GangPolicy(_Strict):
    """All or nothing: `minCount` pods, in a group with children `minGroupCount` child groups."""

    min_count: Count | None = None
    min_group_count: Count | None = None


class SchedulingPolicyChoice(_OneOf):
    """Exactly one of `gang` and `basic`."""

    model_config = _ONE_FIELD
    choices = ("gang", "basic")

    gang: GangPolicy | None = None
    basic: Empty | None = None


class TopologyConstraint(_Strict):
    """All pods within one value of a node label."""

    key: LabelKey


class SchedulingConstraints(_Strict):
    """The topology domain that all pods of a group must share."""

    topology: list[TopologyConstraint] = Field(max_length=1)


class DisruptionMode(_OneOf):
    """Exactly one of `all` and `single`."""

    model_config = _ONE_FIELD
    choices = ("all", "single")

    all: Empty | None = None
    single: Empty | None = None


class ResourceClaim(_OneOf):
    """A claim that the pods of a group share; exactly one of the two sources."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 2, "maxProperties": 2})
    choices = ("resourceClaimName", "resourceClaimTemplateName")

    name: DnsLabel
    resource_claim_name: Subdomain | None = None
    resource_claim_template_name: Subdomain | None = None


class GroupPolicy(_Strict):
    """One group: of pods, or with `groups` of groups.

    Attributes:
        name: the group label of its pods; unique in the tree.
        replicated_jobs: which pod templates mark_runtime marks with it.
        per: `Job`: one PodGroup, or with `groups` one CompositePodGroup, for each Job.
        size: one for each block of that many completion indexes; with `per` for each block of each Job.
        leader: the group takes completion index 0 of its replicatedJobs.
    """

    absent_if_empty = frozenset({"schedulingPolicy", "schedulingConstraints", "disruptionMode"})

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
            for name in filter(lambda name: getattr(self, to_snake(name)), leaf_only):
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


OnMembersLost = Literal["Report", "Restart", "Fail"]
Seconds = Annotated[int, Field(ge=1, le=31_536_000)]
"""At most a year."""


class WorkloadPolicy(_Strict):
    """Groups of scheduling.k8s.io; `{}` means the defaults.

    Attributes:
        groups: the roots of the tree; the groups that the labels name if empty.
        on_scale: whether minCount follows a change of size, or the change is only reported.
        on_failure: whether pods whose groups cannot be made run one by one, or keep their gate.
        scheduling_timeout_seconds: how long a gang may wait for room; unlimited if unset.
        on_timeout: whether that is only reported, the pods run one by one, or the owner is suspended.
        on_members_lost: whether a gang that lost members for which there is no room is only reported, is
            evicted and placed again as a whole, or its Jobs fail.
        members_lost_seconds: how long it may go on with fewer bound pods than minCount before that.
    """

    groups: list[GroupPolicy] = Field(default_factory=list, max_length=8)
    on_scale: Literal["Follow", "Flag"] = "Follow"
    on_failure: Literal["Basic", "Hold"] = "Basic"
    scheduling_timeout_seconds: Seconds | None = None
    on_timeout: Literal["Report", "Basic", "Suspend"] = "Report"
    on_members_lost: OnMembersLost = "Report"
    members_lost_seconds: Seconds = 300

    @model_validator(mode="after")
    def _on_timeout_has_a_timeout(self) -> WorkloadPolicy:
        if "on_timeout" in self.model_fields_set and self.scheduling_timeout_seconds is None:
            raise _at("onTimeout", "needs schedulingTimeoutSeconds")
        return self

    @property
    def sets_preemption(self) -> bool:
        """Whether a group has a preemptionPolicy."""
        return any(group.preemption_policy is not None for _, group in paths_and_groups(self.groups))


def paths_and_groups(
    groups: Sequence[GroupPolicy], above: str = "workload"
) -> Iterator[tuple[str, GroupPolicy]]:
    """Yield path and group of each group in a policy, parents before children."""
    for index, group in enumerate(groups):
        path = f"{above}.groups[{index}]"
        yield path, group
        yield from paths_and_groups(group.groups, path)


class LockedFields(_Strict):
    """Fields that the administrator locked: every policy has these values and may not set others."""

    on_failure: Literal["Basic", "Hold"] | None = None
    on_scale: Literal["Follow", "Flag"] | None = None
    disruption_mode: DisruptionMode | None = None
    min_count: Literal["All"] | None = None
    on_members_lost: OnMembersLost | None = None
    members_lost_seconds: Seconds | None = None


class KaiScheduler(_Strict):
    """KAI Scheduler groups the pods; `queue` is one of its queues."""

    queue: LabelValue | None = None


class PodGroupPolicy(_OneOf):
    """Exactly one source of groups."""

    model_config = _ONE_FIELD
    choices = ("workload", "kaiScheduler", "coscheduling", "volcano")

    workload: WorkloadPolicy | None = None
    kai_scheduler: KaiScheduler | None = None
    coscheduling: dict[str, Any] | None = None
    volcano: dict[str, Any] | None = None


def parse(text: str, *, stored: bool = False) -> PodGroupPolicy:
    """Return the policy in the YAML or JSON text of an annotation or ConfigMap.

    Args:
        text: the text.
        stored: whether Muster wrote it on a Workload, as JSON that is longer than the author's YAML.

    Raises:
        InvalidPolicyError: it is no YAML, or no valid policy; with the path of the first invalid field.
    """
    data = _load(text, STORED_POLICY_BYTES if stored else POLICY_BYTES)
    return _validated(PodGroupPolicy, data, "a policy is a mapping such as {workload: {}}")


def parse_locked(text: str) -> LockedFields:
    """Return the locked fields in the YAML or JSON text of the key `locked`."""
    return _validated(LockedFields, _load(text), "locked fields are a mapping such as {onFailure: Hold}")


def check(data: Mapping[str, Any]) -> PodGroupPolicy:
    """Return the policy of parsed data, such as the field of a runtime, within the limits of a text."""
    return parse(json.dumps(data, ensure_ascii=False))


def asks_to_hold(content: str | Mapping[str, Any]) -> bool:
    """Whether a policy has `onFailure: Hold`, also if it is invalid elsewhere; false if it is no YAML.

    With Hold the pods must not run without their gang, so an error in another field must not let them run.
    """
    try:
        data = _load(content, STORED_POLICY_BYTES) if isinstance(content, str) else content
    except InvalidPolicyError:
        return False
    workload = data.get("workload") if isinstance(data, Mapping) else None
    return isinstance(workload, Mapping) and workload.get("onFailure") == "Hold"


def shortened(text: str, length: int = MESSAGE_LENGTH) -> str:
    """Return the beginning of a tenant's text for a message, with control characters escaped."""
    letters = (char if char.isprintable() else ascii(char)[1:-1] for char in text[:length])
    return "".join(letters) + ("…" if len(text) > length else "")


def _load(text: str, most_bytes: int = POLICY_BYTES) -> Any:
    """Return the data of a text that any tenant may have written; None if it is empty."""
    try:
        _check_text(text, most_bytes)
        data = yaml.load(text, SafeLoader)  # noqa: S506 - a subclass of yaml.SafeLoader
        json.dumps(data)  # commands are printed with it
    except (yaml.YAMLError, ArithmeticError, TypeError, ValueError) as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        why = error.problem or "" if isinstance(error, yaml.MarkedYAMLError) else " ".join(str(error).split())
        line = f" (line {mark.line + 1})" if mark else ""
        raise InvalidPolicyError("", f"cannot be read as YAML: {shortened(why)}{line}") from error
    return data


def _check_text(text: str, most_bytes: int) -> None:
    if len(text.encode()) > most_bytes:
        raise ValueError(f"has more than {most_bytes} bytes")
    depth = 0
    for event in yaml.parse(text, SafeLoader):
        if getattr(event, "anchor", None) is not None:  # an alias has one, too
            raise ValueError("anchors and aliases are not allowed")
        if getattr(event, "tag", None) is not None:
            raise ValueError("tags are not allowed")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > POLICY_DEPTH:
            raise ValueError(f"is nested more than {POLICY_DEPTH} levels deep")


def _validated(model: type[_Model], data: Any, otherwise: str) -> _Model:
    if not isinstance(data, Mapping):
        raise InvalidPolicyError("", otherwise)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        paths, messages = zip(*_faults(model, found[:_MOST_FAULTS]), strict=True)
        told = [messages[0], *map(": ".join, zip(paths[1:], messages[1:], strict=True))]
        raise InvalidPolicyError(paths[0], together(told, len(found))) from error


def together(faults: Sequence[str], number: int = 0) -> str:
    """Return the first faults of a policy as one text, with how many others there are of their number."""
    told = list(faults[:_MOST_FAULTS])
    while len(told) > 1 and len("; ".join(told)) > _FAULTS_LENGTH:
        told.pop()
    others = (number or len(faults)) - len(told)
    return "; ".join([*told, f"and {others} more"] if others else told)


def _faults(model: type[_Strict], errors: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield path and message of each fault; the fields that are allowed are listed once for a model."""
    listed = set()
    for error in errors:
        location = (*error["loc"], *filter(None, [error.get("ctx", {}).get("field")]))
        names = [part if isinstance(part, int) else shortened(part, _NAME_LENGTH) for part in location]
        wrong_name = error["type"] == "string_pattern_mismatch"
        message = shortened(f"{error['input']!r} is not a valid name" if wrong_name else fault(error))
        if error["type"] == "extra_forbidden":
            inside = _model_at(model, error["loc"][:-1])
            near = difflib.get_close_matches(str(names[-1]), _allowed(inside), n=1)
            message += f", did you mean {near[0]}?" if near else ""
            message += f" (allowed: {', '.join(_allowed(inside))})" if inside not in listed else ""
            listed.add(inside)
        yield path_of(names), message


def _model_at(model: type[_Strict], location: Sequence[int | str]) -> type[_Strict]:
    """Return the model of the mapping at a location of a policy."""
    for name in (part for part in location if isinstance(part, str)):
        found = _allowed(model)[name]
        while get_args(found):  # of `list[GroupPolicy]` and `GangPolicy | None`
            found = get_args(found)[0]
        model = found
    return model


def _at(field: str, message: str) -> PydanticCustomError:
    return PydanticCustomError("policy", "{message}", {"field": field, "message": message})
