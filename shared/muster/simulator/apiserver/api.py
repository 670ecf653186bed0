"""`ApiServer`: dispatches requests to discovery, reads, writes and deletes; faults, counters, snapshots."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

from muster.simulator.apiserver import discovery, kinds, schemas
from muster.simulator.apiserver.admission.chain import NAMESPACES
from muster.simulator.apiserver.collector import DEFINITIONS, Collector
from muster.simulator.apiserver.fields import defaults
from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.handlers import reads
from muster.simulator.apiserver.handlers.deletes import Deleter
from muster.simulator.apiserver.handlers.writes import Writer, review_access
from muster.simulator.apiserver.http import (
    ADMINISTRATOR,
    APPLY,
    HttpServer,
    Request,
    RequestTarget,
    Response,
    route,
)
from muster.simulator.apiserver.kinds import Gates, Registry
from muster.simulator.apiserver.objects import Object, copied, name_of, new_uid, now
from muster.simulator.apiserver.refusals import ApiError
from muster.simulator.apiserver.store import Store

INITIAL_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

SYSTEM_CLASSES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}

SET_BY_SERVER = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"}
    | {"deletionTimestamp", "deletionGracePeriodSeconds"}
)
"""Metadata that a client cannot set."""

Intercept = Callable[[Request], tuple[int, Mapping[str, str], Any] | None]
"""A hook that may answer a request with status, headers and body; None lets the request through."""


KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: embedded
clusters: [{{name: embedded, cluster: {{server: "{url}"}}}}]
contexts: [{{name: embedded, context: {{cluster: embedded, user: anybody, namespace: default}}}}]
users: [{{name: anybody, user: {{token: "{user}"}}}}]
"""


class ApiServer:
    """A Kubernetes API server in memory over plain HTTP on loopback.

    It checks neither identities nor permissions: a bearer token is taken for the name of the user. `gates`
    and `intercept`, which may answer a request for objects, may be set while it runs; `url` is known once it
    is started.
    """

    def __init__(self, port: int = 0, gates: Gates | None = None, release: str = "1.37") -> None:
        gates = gates or Gates()
        self.release = release
        self.gates = replace(gates, composite_pod_group=False) if release == "1.36" else gates
        self.intercept: Intercept | None = None
        self.store = Store()
        self.registry = Registry(release, lambda: self.gates)
        self.url = f"http://127.0.0.1:{port}"
        self._port = port
        self._server: HttpServer | None = None
        self._stopped = threading.Event()
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._counting = threading.Lock()
        self._deleter = Deleter(self.store)
        self._collector = Collector(self.store, self.registry, self._deleter)
        self.store.on_change = self._collector.enqueue
        self._ensure_namespaces(INITIAL_NAMESPACES)
        for name, value in SYSTEM_CLASSES.items():
            system: Object = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
            self.load([{**system, "metadata": {"name": name}}])

    def start(self) -> Self:
        """Start serving; requests are answered once this returns."""
        self._server = HttpServer(self.handle, self._port)
        self._server.start()
        self.url = self._server.url
        return self

    def stop(self) -> None:
        """Stop listening and end every watch and connection; the objects remain readable."""
        if self._server is not None:
            self._stopped.set()
            self._server.stop()
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def kubeconfig(self, user: str = ADMINISTRATOR) -> str:
        """Return a kubeconfig as YAML, of a user such as `system:serviceaccount:NAMESPACE:NAME`."""
        return KUBECONFIG.format(url=self.url, user=user or ADMINISTRATOR)

    def answer(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Handle a request without HTTP, other than a watch; return status, body and headers."""
        response = self.handle(Request(method, path, query, headers, body))
        return response.status, response.encoded(), response.headers

    @cached_property
    def _meta(self) -> schemas.Schema:
        return schemas.object_meta(self.release)

    @cached_property
    def _writer(self) -> Writer:
        return Writer(self.store, lambda: self.gates, self.release, self._meta, self._define)

    def calls(self) -> Counter[tuple[str, str, str]]:
        """Return the number of requests by (user agent, verb, resource), such as `jobs/status`."""
        with self._counting:
            return Counter(self._calls)

    def handle(self, request: Request) -> Response:
        """Return the response to a request; an error becomes a response with a Status."""
        if request.path in {"/readyz", "/livez", "/healthz"}:
            return Response(200, b"ok", content_type="text/plain")
        document = discovery.document(self.registry, request.path)
        if document is not None:
            return Response(200, document)
        try:
            response = self._resource_response(request)
        except ApiError as error:
            response = Response(error.code, error.status())
        if request.warnings:
            warnings = ", ".join(f"299 - {json.dumps(text)}" for text in request.warnings)
            response = replace(response, headers={**response.headers, "Warning": warnings})
        return response

    def _resource_response(self, request: Request) -> Response:
        try:
            target = route(self.registry, request)
        finally:
            with self._counting:
                self._calls[request.user_agent, request.verb, request.resource] += 1
        intercepted = self.intercept and self.intercept(request)
        if intercepted:
            status, headers, body = intercepted
            return Response(status, body, headers)
        return self._execute(target, request)

    def _execute(self, target: RequestTarget, request: Request) -> Response:
        match request.verb:
            case "get":
                return reads.get(self.store, target)
            case "list":
                return reads.list_objects(self.store, target, request)
            case "watch":
                return reads.watch(self.store, target, request, self._stopped.is_set)
            case "create" if not target.kind.stored:
                return review_access(target, request)
        functions = {"create": self._writer.create, "delete": self._deleter.delete}
        if target.subresource == "binding":
            functions["create"] = self._writer.bind
        elif target.subresource == "eviction":
            functions["create"] = self._deleter.evict
        try:
            return functions.get(request.verb, self._writer.update)(target, request)
        finally:
            self._collector.run()

    def _define(self, definition: Object) -> None:
        definition["status"] = kinds.established(definition)
        self.registry.define(name_of(definition), kinds.kinds_of(definition, self._meta))

    def load(self, objects: Iterable[Object]) -> None:
        """Store recorded objects unchanged: their uid, resourceVersion, status and times are kept.

        Admission, validation and garbage collection are skipped, missing namespaces are created.
        A LookupError names a kind that is not served.
        """
        order = {"CustomResourceDefinition": 0, "Namespace": 1}
        with self.store.lock:
            for obj in sorted(objects, key=lambda each: order.get(str(each.get("kind")), 2)):
                # Definitions are not copied: nearly all of one is its schema, which nothing changes.
                self._load(obj if obj.get("kind") == "CustomResourceDefinition" else copied(obj))
            self._collector.discard()

    def _load(self, obj: Object) -> None:
        kind = self._kind_of(obj)
        stored = Decoder(kind, self._meta).read(obj)
        defaults.fill(kind, stored, self.gates)
        metadata = stored["metadata"]
        if kind.namespaced:
            self._ensure_namespaces([metadata.setdefault("namespace", "default")])
        metadata.setdefault("uid", new_uid())
        metadata.setdefault("creationTimestamp", now())
        if kind.group_resource == DEFINITIONS:
            self._define(stored)
        self.store.load(kind.group_resource, stored)

    def _kind_of(self, obj: Object) -> kinds.Kind:
        kind = self.registry.of_object(str(obj.get("apiVersion")), str(obj.get("kind")))
        if kind is None:
            raise LookupError(f"{obj.get('kind')} of {obj.get('apiVersion')} is not served")
        return kind

    def _ensure_namespaces(self, names: Iterable[str]) -> None:
        for name in names:
            if self.store.get(NAMESPACES, ("", name)) is None:
                spec = {"finalizers": ["kubernetes"]}
                namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                self._load({**namespace, "spec": spec})

    def apply(self, obj: Object) -> None:
        """Create or update an object and its status by server-side apply, with admission and validation.

        Metadata that a server sets is left out, so an exported object can be given; a missing namespace is
        created. A LookupError names a kind that is not served, an ApiError says why the object is refused.
        """
        kind = self._kind_of(obj)
        metadata = {key: value for key, value in obj["metadata"].items() if key not in SET_BY_SERVER}
        namespace = ""
        if kind.namespaced:
            namespace = metadata.setdefault("namespace", "default")
            self._ensure_namespaces([namespace])
        target = RequestTarget(kind, namespace, metadata["name"])
        bodies = {"": {**obj, "metadata": metadata}}
        status = bodies[""].pop("status", None)
        if kind.has_status and status:
            bodies["status"] = {"metadata": {"name": metadata["name"]}, "status": status}
        for subresource, body in bodies.items():
            query = {"fieldManager": "muster", "force": "true", "fieldValidation": "Strict"}
            text = json.dumps(body).encode()
            request = Request("PATCH", "", query, {"content-type": APPLY}, text, verb="patch")
            self._execute(replace(target, subresource=subresource), request)

    def snapshot(self) -> list[Object]:
        """Return every stored object in the preferred version of its kind; do not change them."""
        served = self.registry.stored_kinds()
        return [
            {**record.obj, "apiVersion": served[resource].api_version}
            for resource, record in self.store.snapshot()
            if resource in served
        ]
