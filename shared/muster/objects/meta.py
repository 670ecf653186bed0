"""Views of the fields that all Kubernetes objects have, and the words for faults of fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel


@dataclass(frozen=True)
class ObjectRef:
    """A reference to an object; `uid` is "" if unknown, or if any object of that name is meant."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def ref_of(body: Mapping[str, Any]) -> ObjectRef:
    """Return the reference to a parsed object, without its UID."""
    metadata = body["metadata"]
    return ObjectRef(body["apiVersion"], body["kind"], metadata.get("namespace") or "", metadata["name"])


LONGEST_NAME = 253


class View(BaseModel):
    """A frozen view of the fields that Muster reads; other fields are ignored."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=True,
        hide_input_in_errors=True,  # traces in logs have no values of objects
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        """Drop nulls: unset structs without omitempty are `null` (scheduling/v1beta1/types.go, v1.37.1)."""
        if isinstance(data, Mapping) and None in data.values():
            return {name: value for name, value in data.items() if value is not None}
        return data


class OwnerReference(View):
    """One entry of `metadata.ownerReferences`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False

    @property
    def group(self) -> str:
        """The API group; the version is dropped because it may differ between writers."""
        return self.api_version.rpartition("/")[0]

    def ref_in(self, namespace: str) -> ObjectRef:
        """Return the reference to this owner of an object in a namespace."""
        return ObjectRef(self.api_version, self.kind, namespace, self.name, self.uid)


class ManagedFieldsEntry(View):
    """One entry of `metadata.managedFields`: who wrote the object, or a subresource of it."""

    manager: str = ""
    subresource: str = ""


class ObjectMeta(View):
    """The fields of `metadata` that Muster reads."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def created_at(self) -> datetime | None:
        """When the API server stored it; None in a manifest, or if it is no time."""
        return read_time(self.creation_timestamp)

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that controls this object."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class ManagedMeta(ObjectMeta):
    """`metadata` with its managedFields, which are not kept of most objects."""

    managed_fields: tuple[ManagedFieldsEntry, ...] = ()

    @property
    def written_by_creator_alone(self) -> bool:
        """Whether nobody but its creator wrote it, other than a subresource; False without managedFields."""
        return sum(not entry.subresource for entry in self.managed_fields) == 1


class KubernetesObject(View):
    """Any object, by its kind and metadata."""

    api_version: str
    kind: str
    metadata: ObjectMeta

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> Self:
        """Return the view of an object as parsed JSON."""
        # Of `replicated_jobs` the API server knows nothing.
        return cls.model_validate(body, by_alias=True, by_name=False)

    @property
    def ref(self) -> ObjectRef:
        """The reference to this object, with its UID."""
        meta = self.metadata
        return ObjectRef(self.api_version, self.kind, meta.namespace, meta.name, meta.uid)

    @property
    def being_deleted(self) -> bool:
        """Whether it has a deletionTimestamp: only finalizers or a grace period keep it."""
        return bool(self.metadata.deletion_timestamp)


def find_condition(conditions: Iterable[Mapping[str, Any]], kind: str) -> Mapping[str, Any] | None:
    """Return the condition of a type, or None."""
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def turned_at(conditions: Iterable[Mapping[str, Any]], kind: str, status: str) -> datetime | None:
    """When the condition of a type got this status; None if it has another or no lastTransitionTime."""
    condition = find_condition(conditions, kind)
    if condition is None or condition.get("status") != status:
        return None
    return read_time(condition.get("lastTransitionTime") or "")


def time_text(at: datetime) -> str:
    """Return a time in UTC as the API writes it, in whole seconds."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: str) -> datetime | None:
    """Return the time of an RFC 3339 text; None if Python cannot read it, as the year 0 or a leap second."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None


def is_true(conditions: Iterable[Mapping[str, Any]], *kinds: str) -> bool:
    """Whether a condition of one of the types is True."""
    return any(
        condition.get("type") in kinds and condition.get("status") == "True" for condition in conditions
    )


_TYPES = {
    "must be an integer": "int_type int_parsing int_from_float int_parsing_size",
    "must be true or false": "bool_type bool_parsing",
    "must be a string": "string_type",
    "must be a list": "list_type tuple_type",
    "must be a mapping": "dict_type mapping_type model_type model_attributes_type",
    "is missing": "missing",
    "unknown field": "extra_forbidden",
}
_BY_TYPE = {kind: words for words, kinds in _TYPES.items() for kind in kinds.split()}
"""The words by pydantic's type of an error (pydantic_core, errors.rs)."""

_WITH_VALUE: Mapping[str, str] = {
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "has {actual_length} entries, at most {max_length} are allowed",
}


def fault(error: Mapping[str, Any]) -> str:
    """Return the words for one of the errors of a `pydantic.ValidationError`."""
    kind = str(error["type"])
    if kind in _WITH_VALUE:
        # Literals are given as `'Follow' or 'Flag'`.
        return _WITH_VALUE[kind].format_map(
            {name: str(value).replace("'", "") for name, value in error["ctx"].items()}
        )
    return _BY_TYPE.get(kind) or str(error["msg"]).removeprefix("Value error, ")


def path_of(location: Sequence[str | int]) -> str:
    """Return the path of a field: `spec.replicatedJobs[0].replicas`."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}"
    return path.removeprefix(".")
