"""Counts the requests in an API server's audit log. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

MUSTER = "system:serviceaccount:muster-system:"


@dataclass(frozen=True)
class Request:
    """An answered request.

    Attributes:
        user: who sent it, such as `system:kube-scheduler`.
        verb: get, list, create, update, patch, delete or deletecollection.
        resource: plural name, and the subresource after a slash: `pods/binding`.
        status: HTTP status of the answer.
        at: when it was answered, in seconds since the epoch.
    """

    user: str
    verb: str
    resource: str
    status: int
    at: float

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> Request:
        """Return the request of an audit event (audit.k8s.io/v1) with an objectRef."""
        reference = event["objectRef"]
        subresource = f"/{reference['subresource']}" if "subresource" in reference else ""
        return cls(
            user=event["user"]["username"],
            verb=event["verb"],
            resource=reference["resource"] + subresource,
            status=event.get("responseStatus", {}).get("code", 0),
            at=datetime.fromisoformat(event["stageTimestamp"]).timestamp(),
        )

    @property
    def name(self) -> str:
        """What tables count: `get podgroups`, and `get podgroups (404)` for a refusal or a miss."""
        return f"{self.verb} {self.resource}" + (f" ({self.status})" if self.status >= 400 else "")

    @property
    def is_write(self) -> bool:
        """Whether it may have changed something."""
        return self.verb not in ("get", "list", "watch")


def requests(events: Iterable[Mapping[str, Any]], without: Iterable[str] = ()) -> list[Request]:
    """Return the requests of audit events in order, except watches and those of some users."""
    skipped = set(without)
    return [
        Request.of(event)
        for event in events
        if "objectRef" in event and event["verb"] != "watch" and event["user"]["username"] not in skipped
    ]


def of_user(given: Iterable[Request], prefix: str) -> list[Request]:
    """Return the requests of the users whose names begin so."""
    return [request for request in given if request.user.startswith(prefix)]


def counts(given: Iterable[Request]) -> Counter[str]:
    """Return the number of requests by `Request.name`."""
    return Counter(request.name for request in given)


def pace(given: Iterable[Request]) -> float:
    """Return requests per second between the first and the last; 0 for fewer than two."""
    times = sorted(request.at for request in given)
    if len(times) < 2 or times[-1] == times[0]:
        return 0.0
    return (len(times) - 1) / (times[-1] - times[0])
