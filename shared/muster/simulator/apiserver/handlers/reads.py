"""GET: objects, lists with selectors and pages, and watches: the changes of a kind as a stream of events."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.http.requests import Request, RequestTarget, Response
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import name_of, namespace_of
from muster.simulator.apiserver.selectors import Matcher, fields_matcher, labels_matcher
from muster.simulator.apiserver.store import ObjectChange, ObjectRecord, Store, encoded

DEFAULT_SECONDS = 1800.0
IDLE_CHECK_SECONDS = 5.0
"""The interval at which an idle watch checks that the client is still connected."""


@dataclass(frozen=True)
class Watch:
    """A watch from a resourceVersion on, for some seconds; version 0 begins with what is there."""

    store: Store
    kind: Kind
    selects: Matcher
    stopped: Callable[[], bool]
    version: int
    seconds: float

    def events(self) -> Iterator[bytes]:
        """Yield the events until the timeout; while idle, an empty chunk every IDLE_CHECK_SECONDS."""
        changes: SimpleQueue[ObjectChange] = SimpleQueue()
        end = time.monotonic() + self.seconds
        with self.store.lock:
            stored = [] if self.version else self.store.all(self.kind.group_resource)
            subscription = self.store.subscribe(self.kind.group_resource, self.version or None, changes.put)
        if subscription is None:
            error = refusals.expired(f"too old resource version: {self.version} ({self.store.version})")
            yield _event("ERROR", json.dumps(error.status()).encode())
            return
        missed, unsubscribe = subscription
        try:
            for record in stored:
                if self.selects(record.obj):
                    yield self._event("ADDED", record)
            for change in missed:
                yield from self._events_of(change)
            while not self.stopped() and (remaining := end - time.monotonic()) > 0:
                try:
                    yield from self._events_of(changes.get(timeout=min(remaining, IDLE_CHECK_SECONDS)))
                except Empty:
                    yield b""
        finally:
            unsubscribe()

    def _events_of(self, change: ObjectChange) -> Iterator[bytes]:
        """Yield the event of a change: ADDED or DELETED if the object starts or stops matching."""
        matched = change.before is not None and self.selects(change.before.obj)
        matches = change.type != "DELETED" and self.selects(change.record.obj)
        if matches:
            yield self._event("MODIFIED" if matched else "ADDED", change.record)
        elif matched and change.before is not None:
            metadata = change.before.obj["metadata"] | {"resourceVersion": str(change.version)}
            yield self._event("DELETED", ObjectRecord(change.before.obj | {"metadata": metadata}))

    def _event(self, event_type: str, record: ObjectRecord) -> bytes:
        return _event(event_type, encoded(self.kind.api_version, self.kind.kind, record))


def _event(event_type: str, obj: bytes) -> bytes:
    return b'{"type":"' + event_type.encode() + b'","object":' + obj + b"}\n"


NOW = -1
"""The resourceVersion in a continue token that continues with the objects of the time of the request."""


def get(store: Store, target: RequestTarget) -> Response:
    """Return the object of a GET request; ApiError 404 if no object has that name."""
    kind = target.kind
    record = store.get(kind.group_resource, target.key)
    if record is None:
        raise refusals.not_found(kind.group, kind.plural, target.name)
    return Response(200, encoded(kind.api_version, kind.kind, record))


def selector(target: RequestTarget, request: Request) -> Matcher:
    """Return the matcher for a request's namespace, label selector and field selector."""
    by_label = labels_matcher(request.query.get("labelSelector", ""))
    by_field = fields_matcher(request.query.get("fieldSelector", ""))
    namespace = target.namespace
    return lambda obj: (
        (not namespace or namespace_of(obj) == namespace)
        and (by_label is None or by_label(obj))
        and (by_field is None or by_field(obj))
    )


def list_objects(store: Store, target: RequestTarget, request: Request) -> Response:
    """Return the objects of a kind as a list, in pages if the request has a limit."""
    kind = target.kind
    matches = selector(target, request)
    limit = max(0, request.integer("limit"))
    with store.lock:
        stored, version = _state(store, kind, target.namespace, request)
        records = [record for record in stored if matches(record.obj)]
        records, version = _after(store, records, request.query.get("continue", ""), version)
    rest = records[limit:] if limit else []
    records = records[:limit] if limit else records
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if kind.custom:
        metadata["continue"] = ""
    if rest:
        last = records[-1].obj
        metadata["continue"] = _token(namespace_of(last), name_of(last), version)
        if not (request.query.get("labelSelector") or request.query.get("fieldSelector")):
            metadata["remainingItemCount"] = len(rest)
    return Response(200, listed(kind, records, metadata))


def _state(store: Store, kind: Kind, namespace: str, request: Request) -> tuple[list[ObjectRecord], int]:
    """Return the objects to list and the list's resourceVersion: the newest, or the exact one."""
    asked, version = request.query.get("resourceVersion", ""), request.integer("resourceVersion")
    if version > store.version:
        raise refusals.version_too_large(version, store.version)
    if request.query.get("resourceVersionMatch") != "Exact":
        return store.all(kind.group_resource, namespace), store.version
    if not version:
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise refusals.invalid_object(
            "meta.k8s.io", "ListOptions", "", [refusals.forbidden("resourceVersionMatch", why)]
        )
    records = store.all_at(kind.group_resource, namespace, version)
    if records is None:
        raise refusals.expired(f"The resourceVersion for the provided list is too old: {asked}")
    return records, version


def listed(kind: Kind, records: list[ObjectRecord], metadata: dict[str, object]) -> bytes:
    """Return the JSON of a list; items of built-in kinds carry no apiVersion and kind."""
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    start = json.dumps(head, separators=(",", ":")).encode()[:-1] + b',"items":['
    if kind.custom:
        items = [encoded(kind.api_version, kind.kind, record) for record in records]
    else:
        items = [b"{" + record.tail for record in records]
    return start + b",".join(items) + b"]}"


def _token(namespace: str, name: str, version: int) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": [namespace, name]})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _after(
    store: Store, records: list[ObjectRecord], token: str, version: int
) -> tuple[list[ObjectRecord], int]:
    """Return the records after the position in a continue token, and the resourceVersion of the list."""
    if not token:
        return records, version
    try:
        position = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = position["start"]
        token_version = int(position["rv"])
    except (ValueError, KeyError, TypeError) as error:
        raise refusals.bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    if token_version == NOW:
        token_version = version
    elif token_version < store.compacted_at:
        message = "The provided continue parameter is too old to display a consistent list result."
        raise refusals.expired(message, _token(namespace, name, NOW))
    start = namespace, name
    rest = [record for record in records if (namespace_of(record.obj), name_of(record.obj)) > start]
    return rest, token_version


def watch(store: Store, target: RequestTarget, request: Request, stopped: Callable[[], bool]) -> Response:
    """Return the watch of a kind; ApiError 400 if the resourceVersion or the timeout is no number."""
    version = request.integer("resourceVersion")
    seconds = request.integer("timeoutSeconds") or DEFAULT_SECONDS
    matches = selector(target, request)
    return Response(200, stream=Watch(store, target.kind, matches, stopped, version, seconds).events)
