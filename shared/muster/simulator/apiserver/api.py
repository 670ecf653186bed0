"""The API without HTTP: every request in, an answer out."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from muster.simulator.apiserver import (
    binding,
    defaults,
    discovery,
    openapi,
    reads,
    reviews,
    schemas,
    strategies,
)
from muster.simulator.apiserver.admission import CLASSES
from muster.simulator.apiserver.collector import DEFINITIONS, NAMESPACES, Collector
from muster.simulator.apiserver.decoding import Decoder
from muster.simulator.apiserver.deletes import Deleter
from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.kinds import Registry
from muster.simulator.apiserver.objects import Object, copied, name_of, new_uid, now
from muster.simulator.apiserver.requests import Answer, Request, Target
from muster.simulator.apiserver.routes import route
from muster.simulator.apiserver.status import ApiError
from muster.simulator.apiserver.store import Change, Place, Record, Store
from muster.simulator.apiserver.validation import definitions
from muster.simulator.apiserver.validation.others import SYSTEM_CLASSES
from muster.simulator.apiserver.writes import Writer

FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

Intercept = Callable[[Request], tuple[int, Mapping[str, str], Any] | None]
"""May answer a request itself, with status, headers and body, or take its time; None lets it pass."""


NO_PAGE = Answer(404, b"404 page not found\n", content_type="text/plain; charset=utf-8")
"""What a path of no known API group is answered with; no Status, as on the real server."""


class Api:
    """All state of one server.

    Attributes:
        gates: the switches; may be replaced at any time.
        intercept: sees every request under /api and /apis before it is carried out.
        stopped: set when watches are to end.
    """

    def __init__(self, release: str, gates: Gates) -> None:
        self.release = release
        self.gates = replace(gates, composite_pod_group=False) if release == "1.36" else gates
        self.intercept: Intercept | None = None
        self.stopped = threading.Event()
        self.address = ""
        self.store = Store()
        self.registry = Registry(release, lambda: self.gates)
        self._meta_schema: schemas.Schema | None = None
        self._calls: Counter[tuple[str, str, str]] = Counter()
        self._counting = threading.Lock()
        self._deleter = Deleter(self.store, reads.selector)
        self._collector = Collector(self.store, self.registry, self._deleter, self._undefine)
        self.store.every_change = self._collector.note
        self._writer_made: Writer | None = None
        self._first_objects()

    @property
    def _meta(self) -> schemas.Schema:
        if self._meta_schema is None:
            self._meta_schema = schemas.object_meta(self.release)
        return self._meta_schema

    @property
    def _writer(self) -> Writer:
        if self._writer_made is None:
            self._writer_made = Writer(self.store, lambda: self.gates, self.release, self._meta, self._define)
        return self._writer_made

    def calls(self) -> Counter[tuple[str, str, str]]:
        """How often each (user agent, verb, resource) was asked for."""
        with self._counting:
            return Counter(self._calls)

    def forget_calls(self) -> None:
        """Start counting anew."""
        with self._counting:
            self._calls.clear()

    def handle(self, request: Request) -> Answer:
        """The answer to a request; failures are answers too."""
        try:
            if request.path.startswith(("/api/", "/apis/")):
                answer = self._resource_answer(request)
            else:
                answer = self._other(request)
        except ApiError as error:
            answer = Answer(error.code, error.status())
        if request.warnings:
            warnings = ", ".join(
                f'299 - "{text.replace(chr(34), chr(92) + chr(34))}"' for text in request.warnings
            )
            answer = replace(answer, headers={**answer.headers, "Warning": warnings})
        return answer

    def _resource_answer(self, request: Request) -> Answer:
        found = self._discovered(request)
        if found is not None:
            return Answer(200, found)
        if request.path.startswith("/apis/") and request.path.split("/")[2] not in self.registry.groups():
            return NO_PAGE
        try:
            target = route(self.registry, request)
        finally:
            self._count(request)
        if self.intercept is not None:
            instead = self.intercept(request)
            if instead is not None:
                status, headers, body = instead
                return Answer(status, body, headers)
        return self._carry_out(target, request)

    def _count(self, request: Request) -> None:
        with self._counting:
            self._calls[request.user_agent, request.verb, request.resource] += 1

    def _discovered(self, request: Request) -> Object | None:
        steps = request.path.strip("/").split("/")
        if steps[0] == "api" and len(steps) == 2:  # noqa: PLR2004 - /api/v1
            return discovery.resources(self.registry, "", steps[1])
        if steps[0] == "apis" and len(steps) == 2:  # noqa: PLR2004 - /apis/batch
            return discovery.group(self.registry, steps[1])
        if steps[0] == "apis" and len(steps) == 3:  # noqa: PLR2004 - /apis/batch/v1
            return discovery.resources(self.registry, steps[1], steps[2])
        return None

    def _carry_out(self, target: Target, request: Request) -> Answer:
        match request.verb:
            case "get":
                return reads.get(self.store, target, request)
            case "list":
                return reads.list_objects(self.store, target, request)
            case "watch":
                return reads.watch(self.store, target, request, self.stopped.is_set)
        function = {
            "create": self._create,
            "update": self._update,
            "patch": self._writer.patch,
            "delete": self._deleter.delete,
            "deletecollection": self._deleter.delete_all,
        }[request.verb]
        try:
            return function(target, request)
        finally:
            self._collector.run()

    def _create(self, target: Target, request: Request) -> Answer:
        if target.subresource == "binding":
            return binding.bind(self.store, target, request)
        if target.subresource == "eviction":
            self._deleter.delete(target, replace(request, body=b""))
            return Answer(
                201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
            )
        if not target.kind.stored:
            return reviews.answer(target, request, self._meta, self.release)
        return self._writer.create(target, request)

    def _update(self, target: Target, request: Request) -> Answer:
        return self._writer.update(target, request)

    def _other(self, request: Request) -> Answer:
        path = request.path.rstrip("/") or "/"
        if path in {"/readyz", "/livez", "/healthz"} or path.startswith(("/readyz/", "/livez/")):
            return Answer(200, b"ok", content_type="text/plain; charset=utf-8")
        found: Object | None = None
        if path == "/version":
            found = discovery.version(self.release)
        elif path == "/api":
            found = discovery.core_versions(self.address)
        elif path == "/apis":
            found = discovery.groups(self.registry)
        elif path == "/openapi/v3":
            found = openapi.index(self.registry)
        elif path.startswith("/openapi/v3/"):
            found = openapi.document(self.registry, path.removeprefix("/openapi/v3/"))
        elif path == "/":
            found = {"paths": ["/api", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]}
        if found is None:
            return NO_PAGE
        return Answer(200, found)

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
        """Put objects in as they are, definitions and namespaces first; see `ApiServer.load`."""
        order = {"CustomResourceDefinition": 0, "Namespace": 1}
        with self.store.lock:
            for obj in sorted(objects, key=lambda found: order.get(str(found.get("kind")), 2)):
                # A definition is mostly its schema, which is read as it is and never changed.
                self._load(obj if obj.get("kind") == "CustomResourceDefinition" else copied(obj))
            self._collector.forget()

    def _load(self, obj: Object) -> None:
        kind = self.registry.of_object(str(obj.get("apiVersion")), str(obj.get("kind")))
        if kind is None:
            raise LookupError(f"{obj.get('kind')} of {obj.get('apiVersion')} is not served")
        read = Decoder(kind, self._meta).read(obj)
        defaults.fill(kind, read, self.gates)
        metadata = read["metadata"]
        if kind.namespaced:
            metadata.setdefault("namespace", "default")
            self._ensure_namespace(metadata["namespace"])
        metadata.setdefault("uid", new_uid())
        metadata.setdefault("creationTimestamp", now())
        if kind.storage == DEFINITIONS:
            self._define(read)
        self.store.load(kind.storage, read)

    def _ensure_namespace(self, name: str) -> None:
        if self.store.get(NAMESPACES, ("", name)) is None:
            self._put(NAMESPACES, "Namespace", "v1", name, _namespace(name))

    def _first_objects(self) -> None:
        for name in FIRST_NAMESPACES:
            self._put(NAMESPACES, "Namespace", "v1", name, _namespace(name))
        for name, value in SYSTEM_CLASSES.items():
            body: Object = {"value": value, "preemptionPolicy": "PreemptLowerPriority"}
            self._put(CLASSES, "PriorityClass", "scheduling.k8s.io/v1", name, body)
        self._collector.forget()

    def _put(self, place: Place, kind: str, api_version: str, name: str, body: Object) -> None:
        metadata = {"name": name, "uid": new_uid(), "creationTimestamp": now()} | body.get("metadata", {})
        self.store.put(place, {"apiVersion": api_version, "kind": kind, **body, "metadata": metadata})

    def snapshot(self) -> list[Object]:
        """Every object, in the version its kind is stored in; to be read, not changed."""
        kinds = self.registry.stored()
        return [
            {**record.obj, "apiVersion": kinds[place].api_version}
            for place, record in self.store.everything()
            if place in kinds
        ]


def _namespace(name: str) -> Object:
    return {
        "metadata": {"labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


__all__ = ["Answer", "Api", "Change", "Intercept", "Record", "Request", "strategies"]
