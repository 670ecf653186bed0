"""What is read from the audit log: which fields of users' objects Muster writes, and what it was refused.

The laws that are checked on a story's timeline are in shared/muster/local/stories/laws.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.policy.group_labels import GATE

Object = dict[str, Any]

_USERS = ("pods", "jobs", "jobsets", "trainjobs", "trainingruntimes", "clustertrainingruntimes", "namespaces")
_RUNTIMES = ("trainingruntimes", "clustertrainingruntimes")
_SUSPENDABLE = ("jobs", "jobsets", "trainjobs")
_OWNERS = ("jobs/status", "jobsets/status", "trainjobs/status")


@dataclass(frozen=True)
class Write:
    """A write by one of Muster's service accounts, from the API server's audit log.

    Attributes:
        writer: the service account's name.
        resource: plural, with the subresource if there is one: ``pods`` or ``jobs/status``.
        status: the answer's HTTP code; 0 when it is missing.
    """

    writer: str
    verb: str
    resource: str
    namespace: str
    name: str
    status: int
    request: Object


def users_objects_are_left_alone(writes: Iterable[Write]) -> list[str]:
    """Return the writes of users' objects that Muster may not make."""
    return [
        f"{write.writer}: {write.verb} {write.resource} {write.namespace}/{write.name}: {write.request}"
        for write in writes
        if write.resource.split("/")[0] in _USERS and not _allowed(write)
    ]


def _allowed(write: Write) -> bool:
    request = write.request
    if write.resource == "pods":
        metadata, spec = request.get("metadata", {}), request.get("spec", {})
        own_fields = set(request) <= {"metadata", "spec"} and set(metadata) <= {"uid", "labels"}
        lifts = spec in ({}, {"schedulingGates": [{"$patch": "delete", "name": GATE}]})
        return write.writer == "patch-pods" and write.verb == "patch" and own_fields and lifts
    if write.resource == "pods/eviction":
        return write.writer == "restart-gang" and write.verb == "create"
    if write.resource in _SUSPENDABLE and request.get("spec") == {"suspend": True}:
        asked = set(request) == {"metadata", "spec"} and set(request["metadata"]) == {"resourceVersion"}
        return write.writer == "resize-gang" and write.verb == "patch" and asked
    if write.resource in _OWNERS:
        metadata, status = request.get("metadata", {}), request.get("status", {})
        own_fields = set(request) <= {"apiVersion", "kind", "metadata", "status"}
        only_identity = set(metadata) <= {"name", "namespace", "resourceVersion", "uid"}
        return write.verb == "patch" and own_fields and only_identity and set(status) == {"conditions"}
    return write.resource in _RUNTIMES and write.writer == "mark-runtime" and write.verb == "update"


SHARED = "muster"
"""The account of all functions in the overlay one-service."""

_ACCOUNT = "system:serviceaccount:muster-system:"


def refused(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the requests of Muster's accounts that RBAC refused: `patch-pods: get secrets team-a/key`."""
    for event in events:
        user, reference = event["user"]["username"], event.get("objectRef") or {}
        annotations = event.get("annotations") or {}
        allowed = annotations.get("authorization.k8s.io/decision") == "allow"
        if user.startswith(_ACCOUNT) and "resource" in reference and not allowed:
            where = f"{reference.get('namespace', '')}/{reference.get('name', '')}"
            yield f"{user.removeprefix(_ACCOUNT)}: {event['verb']} {reference['resource']} {where}"


def denied(events: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the requests that a ValidatingAdmissionPolicy refused, with the user and its message."""
    for event in events:
        message = (event.get("responseStatus") or {}).get("message", "")
        if "ValidatingAdmissionPolicy" in message:
            yield f"{event['user']['username']}: {event['verb']}: {message}"
