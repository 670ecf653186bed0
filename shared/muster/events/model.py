"""What an event says, once it could be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from muster.objects.meta import ObjectRef


class Happened(StrEnum):
    """The last word of an ApiServerSource event's type."""

    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class ResourceEvent:
    """Something happened to an object. A hint: the object may be another one by now.

    Attributes:
        id: the CloudEvent's id, for logs; a retry keeps it, a second adapter does not.
        happened: what.
        ref: to which object; the UID is known in Resource mode only.
        object: the object as it was, in Resource mode; None in Reference mode.
    """

    id: str
    happened: Happened
    ref: ObjectRef
    object: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Sweep:
    """The time has come to look at everything a step is responsible for."""

    id: str


@dataclass(frozen=True)
class Foreign:
    """A valid CloudEvent that says nothing about a Kubernetes object."""

    id: str
    type: str


Event = ResourceEvent | Sweep | Foreign
