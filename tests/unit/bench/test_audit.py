"""Requests are counted by verb, resource and status."""

from __future__ import annotations

from typing import Any

import pytest

from bench import audit
from bench.audit import MUSTER, Request

SCHEDULER = "system:kube-scheduler"


def event(verb: str, resource: str, *, user: str = SCHEDULER, code: int = 200, second: float = 0) -> Any:
    """An audit event as the API server writes it, at level Metadata."""
    plural, _, subresource = resource.partition("/")
    reference = {"resource": plural, "namespace": "bench", "apiVersion": "v1"}
    return {
        "kind": "Event",
        "level": "Metadata",
        "verb": verb,
        "user": {"username": user, "groups": ["system:authenticated"]},
        "objectRef": {**reference, **({"subresource": subresource} if subresource else {})},
        "responseStatus": {"metadata": {}, "code": code},
        "stageTimestamp": f"2026-11-22T21:00:{second:09.6f}Z",
    }


def test_a_request_is_read_from_an_audit_event() -> None:
    """With its subresource, and the time to the microsecond."""
    (request,) = audit.requests([event("create", "pods/binding", code=201, second=1.25)])
    assert request == Request(SCHEDULER, "create", "pods/binding", 201, 1795381201.25)
    assert request.is_write


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (event("get", "podgroups"), "get podgroups"),
        (event("get", "podgroups", code=404), "get podgroups (404)"),
        (event("patch", "pods/status"), "patch pods/status"),
    ],
)
def test_names_distinguish_misses(given: Any, name: str) -> None:
    """A read that finds nothing costs as much, but has another remedy."""
    assert audit.counts(audit.requests([given, given])) == {name: 2}


def test_watches_and_the_benchmarks_own_requests_do_not_count() -> None:
    """Nor requests for no object, such as discovery."""
    discovery = {"verb": "get", "user": {"username": SCHEDULER}}
    others = [event("watch", "pods"), event("create", "jobs", user="kubernetes-admin"), discovery]
    kept = audit.requests([*others, event("get", "pods")], without=["kubernetes-admin"])
    assert [request.name for request in kept] == ["get pods"]


def test_requests_of_muster() -> None:
    """All of its service accounts."""
    given = audit.requests([event("get", "jobs", user=f"{MUSTER}patch-pods"), event("get", "jobs")])
    assert [request.user for request in audit.of_user(given, MUSTER)] == [f"{MUSTER}patch-pods"]


def test_pace_is_requests_per_second() -> None:
    """Between the first and the last, whatever the order in the log."""
    given = [event("create", "pods/binding", second=second) for second in (3, 1, 2.5, 2)]
    assert audit.pace(audit.requests(given)) == pytest.approx(1.5)
    assert audit.pace([]) == 0
