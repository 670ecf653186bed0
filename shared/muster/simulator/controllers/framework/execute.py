"""Execution of writes; the API server's responses go into the cache."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

from muster.cluster import errors
from muster.cluster.http.client import Client
from muster.cluster.interface import Object, PatchType
from muster.objects import resources
from muster.objects.resources import Resource
from muster.simulator.controllers.framework.cache import Cache
from muster.simulator.controllers.framework.fields import key_of, timestamp
from muster.simulator.controllers.framework.writes import Bind, Create, Delete, Patch, RecordEvent, Write

SCHEDULER = "kube-scheduler"

Change = tuple[Resource, Object]
"""A kind and an object that was stored in or removed from the cache."""


class Executor:
    """Executes writes with one client; each response is cached before the next write."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._recorded: set[tuple[str, str, str]] = set()

    def execute(self, write: Write) -> list[Change]:
        """Execute one write and return the objects it changed; ClusterError if the request failed."""
        match write:
            case Create():
                return list(self._create(write))
            case Patch():
                return list(self._patch(write))
            case Delete():
                return list(self._delete(write))
            case Bind():
                return list(self._bind(write))
            case RecordEvent():
                self._record(write)
                return []

    def _create(self, write: Create) -> Iterator[Change]:
        try:
            if write.apply:
                namespace, name = key_of(write.body)
                query = {"fieldManager": write.manager, "force": "true"}
                path, kind = write.resource.path(name, namespace), PatchType.APPLY
                response = self._raw("PATCH", path, write.body, query=query, content_type=kind)
            else:
                response = self._client.create(write.resource, write.body, manager=write.manager)
        except errors.Terminating:
            return  # the namespace is terminating: retrying would fail as well
        except errors.ClusterError as error:
            self._record(RecordEvent(write.owner, "Warning", write.failure, error.message, write.manager))
            raise
        yield from self._cache_object(write.resource, response)

    def _raw(self, method: str, path: str, body: Object, **options: Any) -> Object:
        status, response = self._client.raw(method, path, body=body, **options)
        if status >= 400:  # noqa: PLR2004 - HTTP codes are their own names
            raise errors.from_answer(status, response, {})
        return dict(response)

    def _patch(self, write: Patch) -> Iterator[Change]:
        try:
            response = self._client.patch(
                write.resource,
                write.name,
                write.namespace,
                write.body,
                patch=write.patch,
                manager=write.manager,
                subresource=write.subresource,
            )
        except errors.Gone:
            yield from self._read_back(write.resource, write.namespace, write.name)
            return
        yield from self._cache_object(write.resource, response)
        metadata = response["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            # Removing the last finalizer may have deleted the object.
            yield from self._read_back(write.resource, write.namespace, write.name)

    def _delete(self, write: Delete) -> Iterator[Change]:
        options: Object = {"propagationPolicy": write.propagation, "preconditions": {"uid": write.uid}}
        if write.grace_seconds is not None:
            options["gracePeriodSeconds"] = write.grace_seconds
        path = write.resource.path(write.name, write.namespace)
        status, response = self._client.raw("DELETE", path, body=options)
        if status not in (200, 202, 404, 409):
            raise errors.from_answer(status, response, {})
        yield from self._read_back(write.resource, write.namespace, write.name)

    def _bind(self, write: Bind) -> Iterator[Change]:
        namespace, name = key_of(write.pod)
        binding = {
            "metadata": {"name": name, "namespace": namespace, "uid": write.pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": write.node},
        }
        path = resources.PODS.path(name, namespace, "binding")
        self._raw("POST", path, binding, query={"fieldManager": SCHEDULER})
        assumed = {**write.pod, "spec": {**write.pod["spec"], "nodeName": write.node}}
        self._cache.amend(resources.PODS, assumed)
        yield resources.PODS, assumed

    def _record(self, write: RecordEvent) -> None:
        metadata = write.about["metadata"]
        key = (metadata["uid"], write.reason, write.message)
        if key in self._recorded:
            return
        self._recorded.add(key)
        namespace, name = key_of(write.about)
        now = timestamp(time.time())
        about = {field: write.about[field] for field in ("apiVersion", "kind")}
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{uuid.uuid4().hex[:16]}", "namespace": namespace or "default"},
            "involvedObject": {**about, "name": name, "namespace": namespace, "uid": metadata["uid"]},
            "type": write.type,
            "reason": write.reason,
            "message": write.message,
            "source": {"component": write.component},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            self._client.create(resources.EVENTS, body, manager=write.component)
        except errors.ClusterError:
            self._recorded.discard(key)  # a lost Event must not fail the sync

    def _cache_object(self, resource: Resource, item: Object) -> Iterator[Change]:
        if self._cache.put(resource, item):
            yield resource, item

    def _read_back(self, resource: Resource, namespace: str, name: str) -> Iterator[Change]:
        """Read an object back after a deletion: a finalizer or a kubelet may still hold it."""
        cached = self._cache.get(resource, namespace, name)
        current = self._client.get(resource, name, namespace)
        if cached and (current is None or current["metadata"]["uid"] != cached["metadata"]["uid"]):
            self._cache.remove(resource, cached)
            yield resource, cached
        if current is not None:
            yield from self._cache_object(resource, current)
