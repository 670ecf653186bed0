"""GET: objects, lists with selectors and pages, and watches: the changes of a kind as a stream of events."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.http import Request, RequestTarget, Response
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import name_of, namespace_of
from muster.simulator.apiserver.selectors import Matcher, fields_matcher, labels_matcher
from muster.simulator.apiserver.store import ObjectChange, ObjectRecord, Store, encoded

DEFAULT_SECONDS = 1800.0
IDLE_SECONDS = 1.0
"""How often an idle watch looks whether the server stops."""


def get(store: Store, target: RequestTarget) -> Response:
    """Return the object of a GET request; ApiError 404 if no object has that name."""
    kind = target.kind
    record = store.get(kind.group_resource, target.key)
    if record is None:
        raise refusals.not_found(kind.group, kind.plural, target.name)
    return Response(200, encoded(kind.api_version, kind.kind, record))


def _selector(target: RequestTarget, request: Request) -> Matcher:
    """Return the matcher for a request's namespace, label selector and field selector."""
    by_label = labels_matcher(request.query.get("labelSelector", ""))
    by_field = fields_matcher(request.query.get("fieldSelector", ""))
    namespace = target.namespace
    return lambda obj: (not namespace or namespace_of(obj) == namespace) and by_label(obj) and by_field(obj)


def list_objects(store: Store, target: RequestTarget, request: Request) -> Response:
    """Return the objects of a kind as a list, in pages if the request has a limit.

    A continue token is `VERSION/NAMESPACE/NAME`: the resourceVersion of the list and its last object so far.
    """
    kind, matches, limit = target.kind, _selector(target, request), request.integer("limit")
    with store.lock:
        stored, version = _state(store, kind, target.namespace, request)
        records = [record for record in stored if matches(record.obj)]
    if token := request.query.get("continue"):
        listed, *last = token.split("/")
        version = int(listed)
        records = [one for one in records if [namespace_of(one.obj), name_of(one.obj)] > last]
    rest = records[limit:] if limit else []
    records = records[:limit] if limit else records
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if rest:
        last_obj = records[-1].obj
        metadata["continue"] = f"{version}/{namespace_of(last_obj)}/{name_of(last_obj)}"
        metadata["remainingItemCount"] = len(rest)
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    start = json.dumps(head, separators=(",", ":")).encode()[:-1] + b',"items":['
    if kind.custom:
        items = [encoded(kind.api_version, kind.kind, record) for record in records]
    else:
        items = [b"{" + record.tail for record in records]  # without apiVersion and kind
    return Response(200, start + b",".join(items) + b"]}")


def _state(store: Store, kind: Kind, namespace: str, request: Request) -> tuple[list[ObjectRecord], int]:
    """Return the objects to list and the list's resourceVersion: the newest, or the exact one."""
    version = request.integer("resourceVersion")
    if request.query.get("resourceVersionMatch") != "Exact":
        return store.all(kind.group_resource, namespace), store.version
    records = store.all_at(kind.group_resource, namespace, version)
    if records is None:
        raise refusals.expired(f"The resourceVersion for the provided list is too old: {version}")
    return records, version


def watch(store: Store, target: RequestTarget, request: Request, stopped: Callable[[], bool]) -> Response:
    """Return the watch of a kind; ApiError 400 if the resourceVersion or the timeout is no number."""
    version = request.integer("resourceVersion")
    seconds = request.integer("timeoutSeconds") or DEFAULT_SECONDS
    kind, matches = target.kind, _selector(target, request)
    return Response(200, stream=lambda: _events(store, kind, matches, stopped, version, seconds))


def _events(
    store: Store, kind: Kind, matches: Matcher, stopped: Callable[[], bool], version: int, seconds: float
) -> Iterator[bytes]:
    """Yield the events of a watch until the timeout; from version 0 it begins with what is there."""
    changes: SimpleQueue[ObjectChange] = SimpleQueue()
    end = time.monotonic() + seconds
    with store.lock:
        stored = [] if version else store.all(kind.group_resource)
        subscription = store.subscribe(kind.group_resource, version or None, changes.put)
    if subscription is None:
        error = refusals.expired(f"too old resource version: {version} ({store.version})")
        yield _event("ERROR", json.dumps(error.status()).encode())
        return
    missed, unsubscribe = subscription
    try:
        for record in stored:
            if matches(record.obj):
                yield _object_event("ADDED", kind, record)
        for change in missed:
            yield from _events_of(change, kind, matches)
        while not stopped() and (remaining := end - time.monotonic()) > 0:
            with suppress(Empty):
                change = changes.get(timeout=min(remaining, IDLE_SECONDS))
                yield from _events_of(change, kind, matches)
    finally:
        unsubscribe()


def _events_of(change: ObjectChange, kind: Kind, matches: Matcher) -> Iterator[bytes]:
    """Yield the event of a change: ADDED or DELETED if the object starts or stops matching."""
    matched = change.before is not None and matches(change.before.obj)
    if change.type != "DELETED" and matches(change.record.obj):
        yield _object_event("MODIFIED" if matched else "ADDED", kind, change.record)
    elif matched and change.before is not None:
        metadata = change.before.obj["metadata"] | {"resourceVersion": str(change.version)}
        yield _object_event("DELETED", kind, ObjectRecord(change.before.obj | {"metadata": metadata}))


def _object_event(event_type: str, kind: Kind, record: ObjectRecord) -> bytes:
    return _event(event_type, encoded(kind.api_version, kind.kind, record))


def _event(event_type: str, obj: bytes) -> bytes:
    return b'{"type":"' + event_type.encode() + b'","object":' + obj + b"}\n"
