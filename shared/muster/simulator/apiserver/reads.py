"""GET of one object and of collections: versions, selectors, pages, tables."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

from muster.simulator.apiserver import tables
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import name_of, namespace_of
from muster.simulator.apiserver.requests import Answer, Request, Target
from muster.simulator.apiserver.scale import scale_of
from muster.simulator.apiserver.selectors import Matcher, fields_matcher, labels_matcher
from muster.simulator.apiserver.status import bad_request, expired, not_found
from muster.simulator.apiserver.store import Record, Store, encoded
from muster.simulator.apiserver.watch import Watch

NOW = -1
"""In place of a resourceVersion in a continue token: the list goes on with what is there by then."""

INCONSISTENT = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may show "
    "up in the list."
)
"""As in kubernetes, staging/src/k8s.io/apiserver/pkg/storage/etcd3/errors.go."""


def get(store: Store, target: Target, request: Request) -> Answer:
    """One object, its scale, or its row of a table.

    Raises:
        ApiError: 404, there is none of that name.
    """
    kind = target.kind
    record = store.get(kind.storage, target.key)
    if record is None:
        raise not_found(kind.group, kind.plural, target.name)
    if target.subresource == "scale":
        return Answer(200, scale_of(kind, record.obj))
    if tables.wanted(request):
        return Answer(200, tables.table(kind, [record], str(record.version), request))
    return Answer(200, encoded(kind.api_version, kind.kind, record))


def selector(kind: Kind, target: Target, request: Request) -> Matcher:
    """Which objects the request's selectors, namespace and name choose."""
    by_label = labels_matcher(request.query.get("labelSelector", ""))
    by_field = fields_matcher(kind, request.query.get("fieldSelector", ""))
    namespace = target.namespace

    def matches(obj: dict[str, object]) -> bool:
        return (
            (not namespace or namespace_of(obj) == namespace)
            and (by_label is None or by_label(obj))
            and (by_field is None or by_field(obj))
        )

    return matches


def list_objects(store: Store, target: Target, request: Request) -> Answer:
    """The objects of a kind, whole or by pages, as a list or a table.

    Raises:
        ApiError: 400 or 410, the continue token is broken or too old; 410 has one that goes on now.
    """
    kind = target.kind
    matches = selector(kind, target, request)
    with store.lock:
        version = store.version
        found = [record for record in store.all(kind.storage, target.namespace) if matches(record.obj)]
        found, version = _after(store, found, request.query.get("continue", ""), version)
    limit = int(request.query.get("limit") or 0)
    rest = found[limit:] if limit else []
    found = found[:limit] if limit else found
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if kind.custom:
        metadata["continue"] = ""
    if rest:
        last = found[-1].obj
        metadata["continue"] = _token(namespace_of(last), name_of(last), version)
        if not (request.query.get("labelSelector") or request.query.get("fieldSelector")):
            metadata["remainingItemCount"] = len(rest)
    if tables.wanted(request):
        answer = tables.table(kind, found, str(version), request)
        return Answer(200, answer | {"metadata": metadata})
    return Answer(200, _joined(kind, found, metadata))


def _joined(kind: Kind, records: list[Record], metadata: dict[str, object]) -> bytes:
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    start = json.dumps(head, separators=(",", ":")).encode()[:-1] + b',"items":['
    return start + b",".join(listed(kind, record) for record in records) + b"]}"


def listed(kind: Kind, record: Record) -> bytes:
    """An object as an item of a list: built-in kinds leave their kind to the list."""
    return encoded(kind.api_version, kind.kind, record) if kind.custom else b"{" + record.tail


def _token(namespace: str, name: str, version: int) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": [namespace, name]})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _after(store: Store, found: list[Record], token: str, version: int) -> tuple[list[Record], int]:
    if not token:
        return found, version
    try:
        read = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = read["start"]
        then = int(read["rv"])
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    if then == NOW:
        then = version
    elif then < store.forgotten:
        raise expired(INCONSISTENT, _token(namespace, name, NOW))
    rest = [record for record in found if (namespace_of(record.obj), name_of(record.obj)) > (namespace, name)]
    return rest, then


def watch(store: Store, target: Target, request: Request, stopped: Callable[[], bool]) -> Answer:
    """A watch of a kind, or of one object by its name."""
    kind = target.kind
    as_table = tables.wanted(request)

    def encode(record: Record) -> bytes:
        if as_table:
            return json.dumps(tables.table(kind, [record], str(record.version), request)).encode()
        return encoded(kind.api_version, kind.kind, record)

    following = Watch(store, kind, request, selector(kind, target, request), encode, stopped)
    return Answer(200, stream=following.events)
