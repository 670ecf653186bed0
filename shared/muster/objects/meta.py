"""Views of the fields that all Kubernetes objects have: metadata, owner references and conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, model_validator
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
"""The most characters of a name in Kubernetes."""

_QUALIFIED_NAME = LONGEST_NAME + 1 + 63
"""The most characters of an apiVersion, and of the key of a label: a DNS name, `/` and 63 more."""
_LENGTHS = (("apiVersion", _QUALIFIED_NAME), ("kind", 63))
_METADATA_LENGTHS = (("name", LONGEST_NAME), ("namespace", 63), ("uid", 128), ("creationTimestamp", 64))
"""The most characters of what names an object in Kubernetes: of an apiVersion those of a group, `/` and a
version. Messages repeat them. The API server makes UIDs of 36 and times of 20 characters."""


MOST_TEXT = 3 * 1024 * 1024
"""The most characters of the texts of an object: an API server takes no larger request
(MaxRequestBodyBytes in apiserver/pkg/server/config.go, Kubernetes v1.37.1)."""


def has_too_much_text(body: Mapping[str, Any]) -> bool:
    """Return whether the texts of an object, with keys longer than those of labels, exceed MOST_TEXT."""
    rest: list[Any] = [body]
    left = MOST_TEXT
    while rest and left >= 0:
        value = rest.pop()
        if isinstance(value, str):
            left -= len(value)
        elif isinstance(value, dict):
            rest += value.values()
            rest += [key for key in value if len(str(key)) > _QUALIFIED_NAME]
        elif isinstance(value, list):
            rest += value
    return left < 0


def has_more_fields(body: Mapping[str, Any], most: int) -> bool:
    """Return whether the mappings and lists of an object have more fields and entries than `most`."""
    rest: list[Any] = [body]
    values = 0
    while rest:
        container = rest.pop()
        values += len(container)
        if values > most:
            return True
        entries = container.values() if isinstance(container, Mapping) else container
        rest += [entry for entry in entries if isinstance(entry, (dict, list))]
    return False


def overlong_field(body: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the first field that names an object and is longer than Kubernetes allows, and its limit."""
    for name, most in _LENGTHS:
        if isinstance(value := body.get(name), str) and len(value) > most:
            return name, most
    metadata = body.get("metadata")
    found = overlong_metadata(metadata) if isinstance(metadata, Mapping) else None
    return found and (f"metadata.{found[0]}", found[1])


def overlong_metadata(metadata: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the first field of metadata that is longer than Kubernetes allows, and its limit."""
    for name, most in _METADATA_LENGTHS:
        if isinstance(value := metadata.get(name), str) and len(value) > most:
            return name, most
    return None


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


MOST_ENTRIES = 1000
"""The entries that are read of a list in an object. A list of 200 KB can have tens of thousands, whose views
take a second; of the lists that Muster reads, the longest in use have a few hundred."""


FEW_ENTRIES = 100
"""The entries that are read of lists with a few in use: owner references, gates, managers of a group. Forged
events may have full ones, which are read before the event has its turn."""


def _first(most: int) -> BeforeValidator:
    """Return a validator that keeps so many entries of a list."""
    return BeforeValidator(lambda value: value[:most] if isinstance(value, list | tuple) else value)


def _texts(value: Any) -> Any:
    """Refuse a mapping with other values than texts, with one fault: pydantic makes one for each value."""
    if isinstance(value, dict) and not {*map(type, value.values())} <= {str}:
        name = next(name for name, text in value.items() if not isinstance(text, str))
        raise ValueError(f"{str(name)[:64]} must be a string")
    return value


class _FirstFault(FailFast):
    """`FailFast`, which Python 3.11 cannot have in a union, because it has no hash."""

    __hash__ = object.__hash__


_Entry = TypeVar("_Entry")
Entries = Annotated[tuple[_Entry, ...], _FirstFault(), _first(MOST_ENTRIES)]
"""A list: its first entries, or the fault of the first of them that has one."""
FewEntries = Annotated[tuple[_Entry, ...], _FirstFault(), _first(FEW_ENTRIES)]
"""The same of a list that has a few entries in use."""
Texts = Annotated[dict[str, str], BeforeValidator(_texts)]
"""Labels or annotations."""


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
    labels: Texts = Field(default_factory=dict)
    annotations: Texts = Field(default_factory=dict)
    owner_references: FewEntries[OwnerReference] = ()

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

    managed_fields: FewEntries[ManagedFieldsEntry] = ()

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
        """Return the view of an object as parsed JSON.

        Raises:
            pydantic.ValidationError: a field has a type that no API server would have stored.
        """
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


def became_true_at(conditions: Iterable[Mapping[str, Any]], kind: str) -> datetime | None:
    """When the condition of a type became True; None if it is not True or has no lastTransitionTime."""
    return turned_at(conditions, kind, "True")


def turned_at(conditions: Iterable[Mapping[str, Any]], kind: str, status: str) -> datetime | None:
    """When the condition of a type got this status; None if it has another or no lastTransitionTime."""
    condition = find_condition(conditions, kind)
    if condition is None or condition.get("status") != status:
        return None
    return read_time(condition.get("lastTransitionTime") or "")


def read_time(text: str) -> datetime | None:
    """Return the time of an RFC 3339 text; None without one, or if Python cannot read it.

    The year 0 and leap seconds pass the validation of the API server.
    """
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
