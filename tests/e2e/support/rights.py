"""Requests of Muster's service accounts that RBAC or an admission policy refused, from the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Object = Mapping[str, Any]
SHARED = "muster"
"""The account of all functions in the overlay one-service."""

_ACCOUNT = "system:serviceaccount:muster-system:"


def refused(events: Iterable[Object]) -> Iterator[str]:
    """Yield the requests of Muster's accounts that RBAC refused: `patch-pods: get secrets team-a/key`."""
    for event in events:
        user, reference = event["user"]["username"], event.get("objectRef") or {}
        annotations = event.get("annotations") or {}
        allowed = annotations.get("authorization.k8s.io/decision") == "allow"
        if user.startswith(_ACCOUNT) and "resource" in reference and not allowed:
            where = f"{reference.get('namespace', '')}/{reference.get('name', '')}"
            yield f"{user.removeprefix(_ACCOUNT)}: {event['verb']} {reference['resource']} {where}"


def denied(events: Iterable[Object]) -> Iterator[str]:
    """Yield the requests that a ValidatingAdmissionPolicy refused, with the user and its message."""
    for event in events:
        message = (event.get("responseStatus") or {}).get("message", "")
        if "ValidatingAdmissionPolicy" in message:
            yield f"{event['user']['username']}: {event['verb']}: {message}"
