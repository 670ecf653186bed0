"""The API without HTTP: `ApiBackend.handle` dispatches requests to discovery, reads, writes and deletes."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from muster.simulator.apiserver import discovery, schemas
from muster.simulator.apiserver.admission.chain import CLASSES
from muster.simulator.apiserver.collector import DEFINITIONS, NAMESPACES, Collector
from muster.simulator.apiserver.fields import defaults
from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.handlers import reads, virtual
from muster.simulator.apiserver.handlers.deletes import Deleter
from muster.simulator.apiserver.handlers.writes import Writer
from muster.simulator.apiserver.http.requests import APPLY, Request, RequestTarget, Response
from muster.simulator.apiserver.http.routes import route
from muster.simulator.apiserver.kinds import Registry
from muster.simulator.apiserver.objects import Object, copied, name_of, new_uid, now
from muster.simulator.apiserver.status import ApiError, method_not_allowed
from muster.simulator.apiserver.store import GroupResource, Store
from muster.simulator.apiserver.validation import definitions
from muster.simulator.apiserver.validation.other_kinds import SYSTEM_CLASSES

INITIAL_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

SET_BY_SERVER = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"}
    | {"deletionTimestamp", "deletionGracePeriodSeconds"}
)
"""Metadata that a client cannot set."""

Intercept = Callable[[Request], tuple[int, Mapping[str, str], Any] | None]
"""A hook that may answer a request with status, headers and body; None lets the request through."""


PAGE_NOT_FOUND = Response(404, b"404 page not found\n", content_type="text/plain; charset=utf-8")
"""The response for a path of an unknown API group; not a Status, as on the real server."""


class ApiBackend:
    """The state of a server and the handler of its requests."""

    def __init__(self, release: str, gates: Gates) -> None:
        self.release = release
        self.gates = replace(gates, composite_pod_group=False) if release == "1.36" else gates
        self.intercept: Intercept | None = None
        self.stopped = threading.Event()
        self.store = Store()
        self.registry = Registry(release, lambda: self.gates)
        self._meta_schema: schemas.Schema | None = None
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._counting = threading.Lock()
        self._deleter = Deleter(self.store)
        self._collector = Collector(self.store, self.registry, self._deleter, self._undefine)
        self.store.on_change = self._collector.enqueue
        self._cached_writer: Writer | None = None
        self._create_initial_objects()

    @property
    def _meta(self) -> schemas.Schema:
        if self._meta_schema is None:
            self._meta_schema = schemas.object_meta(self.release)
        return self._meta_schema

    @property
    def _writer(self) -> Writer:
        if self._cached_writer is None:
            self._cached_writer = Writer(
                self.store, lambda: self.gates, self.release, self._meta, self._define
            )
        return self._cached_writer

    def calls(self) -> Counter[tuple[str, str, str]]:
        """Return the number of requests by (user agent, verb, resource)."""
        with self._counting:
            return Counter(self._calls)

    def forget_calls(self) -> None:
        """Reset the counters of `calls`."""
        with self._counting:
            self._calls.clear()

    def handle(self, request: Request) -> Response:
        """Return the response to a request; an error becomes a response with a Status."""
        try:
            if request.path.rstrip("/").startswith(("/api/", "/apis/")):
                response = self._resource_response(request)
            else:
                response = self._non_resource_response(request)
        except ApiError as error:
            response = Response(error.code, error.status())
        if request.warnings:
            warnings = ", ".join(f"299 - {json.dumps(text)}" for text in request.warnings)
            response = replace(response, headers={**response.headers, "Warning": warnings})
        return response

    def _resource_response(self, request: Request) -> Response:
        document = self._discovery(request)
        if document is not None:
            return Response(200, document)
        if request.path.startswith("/apis/") and request.path.split("/")[2] not in self.registry.groups():
            return PAGE_NOT_FOUND
        try:
            target = route(self.registry, request)
        finally:
            self._count(request)
        if self.intercept is not None:
            response = self.intercept(request)
            if response is not None:
                status, headers, body = response
                return Response(status, body, headers)
        return self._execute(target, request)

    def _count(self, request: Request) -> None:
        with self._counting:
            self._calls[request.user_agent, request.verb, request.resource] += 1

    def _discovery(self, request: Request) -> Object | None:
        match request.path.strip("/").split("/"):
            case ["api", version]:
                return discovery.resources(self.registry, "", version)
            case ["apis", group]:
                return discovery.group(self.registry, group)
            case ["apis", group, version]:
                return discovery.resources(self.registry, group, version)
        return None

    def _execute(self, target: RequestTarget, request: Request) -> Response:
        match request.verb:
            case "get":
                return reads.get(self.store, target)
            case "list":
                return reads.list_objects(self.store, target, request)
            case "watch":
                return reads.watch(self.store, target, request, self.stopped.is_set)
        if request.verb not in {"create", "update", "patch", "delete"}:
            raise method_not_allowed()
        function = {
            "create": self._create,
            "update": self._writer.update,
            "patch": self._writer.patch,
            "delete": self._deleter.delete,
        }[request.verb]
        try:
            return function(target, request)
        finally:
            self._collector.run()

    def _create(self, target: RequestTarget, request: Request) -> Response:
        if target.subresource == "binding":
            return virtual.bind(self.store, target, request)
        if target.subresource == "eviction":
            self._deleter.delete(target, replace(request, body=b""))
            return Response(201, virtual.CREATED)
        if not target.kind.stored:
            return virtual.review_access(target, request)
        return self._writer.create(target, request)

    def _non_resource_response(self, request: Request) -> Response:
        path = request.path.rstrip("/")
        if path in {"/readyz", "/livez", "/healthz"}:
            return Response(200, b"ok", content_type="text/plain; charset=utf-8")
        document: Object | None = None
        if path == "/version":
            document = discovery.version(self.release)
        elif path == "/api":
            document = {"kind": "APIVersions", "versions": ["v1"]}
        elif path == "/apis":
            document = discovery.groups(self.registry)
        elif path == "/openapi/v3":
            document = discovery.openapi_index(self.registry)
        elif path.startswith("/openapi/v3/"):
            document = discovery.openapi_document(self.registry, path.removeprefix("/openapi/v3/"))
        return PAGE_NOT_FOUND if document is None else Response(200, document)

    def _define(self, definition: Object) -> None:
        definition["status"] = definitions.established(definition) | {
            key: value
            for key, value in (definition.get("status") or {}).items()
            if key == "conditions" and value
        }
        self.registry.define(name_of(definition), definitions.kinds_of(definition, self._meta))

    def _undefine(self, name: str) -> None:
        self.registry.define(name, ())

    def load(self, objects: Iterable[Object]) -> None:
        """Store objects unchanged, CustomResourceDefinitions and Namespaces first; see `ApiServer.load`."""
        order = {"CustomResourceDefinition": 0, "Namespace": 1}
        with self.store.lock:
            for obj in sorted(objects, key=lambda each: order.get(str(each.get("kind")), 2)):
                # Definitions are not copied: nearly all of one is its schema, which nothing changes.
                self._load(obj if obj.get("kind") == "CustomResourceDefinition" else copied(obj))
            self._collector.discard()

    def _load(self, obj: Object) -> None:
        kind = self.registry.of_object(str(obj.get("apiVersion")), str(obj.get("kind")))
        if kind is None:
            raise LookupError(f"{obj.get('kind')} of {obj.get('apiVersion')} is not served")
        stored = Decoder(kind, self._meta).read(obj)
        defaults.fill(kind, stored, self.gates)
        metadata = stored["metadata"]
        if kind.namespaced:
            metadata.setdefault("namespace", "default")
            self._ensure_namespace(metadata["namespace"])
        metadata.setdefault("uid", new_uid())
        metadata.setdefault("creationTimestamp", now())
        if kind.group_resource == DEFINITIONS:
            self._define(stored)
        self.store.load(kind.group_resource, stored)

    def apply(self, obj: Object) -> None:
        """Create or update an object and its status by server-side apply; see `ApiServer.apply`."""
        kind = self.registry.of_object(str(obj.get("apiVersion")), str(obj.get("kind")))
        if kind is None:
            raise LookupError(f"{obj.get('kind')} of {obj.get('apiVersion')} is not served")
        metadata = {key: value for key, value in obj["metadata"].items() if key not in SET_BY_SERVER}
        namespace = ""
        if kind.namespaced:
            namespace = metadata.setdefault("namespace", "default")
            self._ensure_namespace(namespace)
        target = RequestTarget(kind, namespace, str(metadata.get("name", "")))
        bodies = {"": {key: value for key, value in obj.items() if key != "status"} | {"metadata": metadata}}
        if kind.has_status and obj.get("status"):
            identity = {"name": metadata.get("name"), "namespace": namespace}
            bodies["status"] = {**obj, "metadata": identity}
            bodies["status"].pop("spec", None)
        headers = {"content-type": APPLY}
        for subresource, body in bodies.items():
            query = {"fieldManager": "muster", "force": "true", "fieldValidation": "Strict"}
            request = Request("PATCH", "", query, headers, json.dumps(body).encode(), verb="patch")
            self._execute(replace(target, subresource=subresource), request)

    def _ensure_namespace(self, name: str) -> None:
        if self.store.get(NAMESPACES, ("", name)) is None:
            self._put(NAMESPACES, "Namespace", "v1", name, _namespace(name))

    def _create_initial_objects(self) -> None:
        for name in INITIAL_NAMESPACES:
            self._put(NAMESPACES, "Namespace", "v1", name, _namespace(name))
        for name, value in SYSTEM_CLASSES.items():
            body: Object = {"value": value, "preemptionPolicy": "PreemptLowerPriority"}
            self._put(CLASSES, "PriorityClass", "scheduling.k8s.io/v1", name, body)
        self._collector.discard()

    def _put(self, resource: GroupResource, kind: str, api_version: str, name: str, body: Object) -> None:
        metadata = {"name": name, "uid": new_uid(), "creationTimestamp": now()} | body.get("metadata", {})
        self.store.put(resource, {"apiVersion": api_version, "kind": kind, **body, "metadata": metadata})

    def snapshot(self) -> list[Object]:
        """Return every stored object in the preferred version of its kind; do not change them."""
        kinds = self.registry.stored_kinds()
        return [
            {**record.obj, "apiVersion": kinds[resource].api_version}
            for resource, record in self.store.snapshot()
            if resource in kinds
        ]


def _namespace(name: str) -> Object:
    return {
        "metadata": {"labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
