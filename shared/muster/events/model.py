"""The kinds of events that Muster distinguishes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from muster.objects.meta import ObjectRef


class Happened(StrEnum):
    """The last part of the type of an ApiServerSource event."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class ResourceEvent:
    """A change of an object. Only a hint: the object may have changed again since.

    In Reference mode `ref` is without UID, and `object`, its state at the time of the event, is None.
    """

    id: str
    happened: Happened
    ref: ObjectRef
    object: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Sweep:
    """A request to run the step on all objects of its kinds."""

    id: str


@dataclass(frozen=True)
class OtherEvent:
    """A CloudEvent of another type, such as a reply event; `data` is parsed if it is JSON."""

    id: str
    type: str
    data: Any = None


Event = ResourceEvent | Sweep | OtherEvent
