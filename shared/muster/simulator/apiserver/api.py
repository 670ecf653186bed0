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
from muster.simulator.apiserver.admission.chain import CLASSES
from muster.simulator.apiserver.collector import DEFINITIONS, NAMESPACES, Collector
from muster.simulator.apiserver.fields import defaults
from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.handlers import reads, virtual
from muster.simulator.apiserver.handlers.deletes import Deleter
from muster.simulator.apiserver.handlers.writes import Writer
from muster.simulator.apiserver.http.http_server import HttpServer
from muster.simulator.apiserver.http.requests import (
    ADMINISTRATOR,
    APPLY,
    Request,
    RequestTarget,
    Response,
    route,
)
from muster.simulator.apiserver.kinds import Gates, Registry
from muster.simulator.apiserver.objects import Object, copied, name_of, new_uid, now
from muster.simulator.apiserver.refusals import ApiError, method_not_allowed
from muster.simulator.apiserver.store import GroupResource, Store
from muster.simulator.apiserver.validation.other_kinds import SYSTEM_CLASSES

RELEASES = ("1.37", "1.36")
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


KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: embedded
  cluster:
    server: {url}
contexts:
- name: embedded
  context:
    cluster: embedded
    user: anybody
    namespace: default
users:
- name: anybody
  user: {{token: "{user}"}}
current-context: embedded
"""


class ApiServer:
    """A Kubernetes API server in memory over plain HTTP on loopback.

    It checks neither identities nor permissions: a bearer token is taken for the name of the user. `gates`
    and `intercept`, which may answer a request under /api and /apis, may be set while it runs.
    """

    def __init__(
        self, port: int = 0, host: str = "127.0.0.1", gates: Gates | None = None, release: str = "1.37"
    ) -> None:
        if release not in RELEASES:
            raise ValueError(f"release {release}: known are {', '.join(RELEASES)}")
        gates = gates or Gates()
        self.release = release
        self.gates = replace(gates, composite_pod_group=False) if release == "1.36" else gates
        self.intercept: Intercept | None = None
        self.store = Store()
        self.registry = Registry(release, lambda: self.gates)
        self._address = host, port
        self._server: HttpServer | None = None
        self._stopped = threading.Event()
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._counting = threading.Lock()
        self._deleter = Deleter(self.store)
        self._collector = Collector(self.store, self.registry, self._deleter, self._undefine)
        self.store.on_change = self._collector.enqueue
        self._create_initial_objects()

    def start(self) -> Self:
        """Start serving; requests are answered once this returns."""
        self._server = HttpServer(self._address, self.handle)
        host, port = self._server.server_address[:2]
        self._address = str(host), int(port)
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="apiserver", daemon=True
        ).start()
        return self

    def stop(self) -> None:
        """Stop listening and end every watch and connection; the objects remain readable."""
        if self._server is not None:
            self._stopped.set()
            self._server.shutdown()
            self._server.close_connections()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The base URL: `http://127.0.0.1:41234`."""
        return f"http://{self._address[0]}:{self._address[1]}"

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

    def forget_calls(self) -> None:
        """Reset the counters of `calls`."""
        with self._counting:
            self._calls.clear()

    def forget_history(self) -> None:
        """Drop the history of changes as a compaction of etcd does: older watches and lists get 410."""
        self.store.forget_history()

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
                return reads.watch(self.store, target, request, self._stopped.is_set)
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
        definition["status"] = kinds.established(definition) | {
            key: value
            for key, value in (definition.get("status") or {}).items()
            if key == "conditions" and value
        }
        self.registry.define(name_of(definition), kinds.kinds_of(definition, self._meta))

    def _undefine(self, name: str) -> None:
        self.registry.define(name, ())

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
        """Create or update an object and its status by server-side apply, with admission and validation.

        Metadata that a server sets is left out, so an exported object can be given; a missing namespace is
        created. A LookupError names a kind that is not served, an ApiError says why the object is refused.
        """
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
        served = self.registry.stored_kinds()
        return [
            {**record.obj, "apiVersion": served[resource].api_version}
            for resource, record in self.store.snapshot()
            if resource in served
        ]


def _namespace(name: str) -> Object:
    return {
        "metadata": {"labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }
