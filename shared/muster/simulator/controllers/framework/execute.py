"""Execution of writes; the API server's responses go into the cache."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator

from muster.cluster import errors
from muster.cluster.http.client import Client
from muster.cluster.interface import Object, PatchType
from muster.objects import resources
from muster.objects.resources import Resource
from muster.simulator.controllers.framework.cache import Cache
from muster.simulator.controllers.framework.fields import key_of, timestamp
from muster.simulator.controllers.framework.writes import (
    Apply,
    Bind,
    Create,
    Delete,
    Patch,
    RecordEvent,
    Write,
)

SCHEDULER = "kube-scheduler"

Change = tuple[Resource, Object]
"""A kind and an object that was stored in or removed from the cache."""


class Executor:
    """Executes writes with one client; each response is cached before the next write."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._client = client
        self._cache = cache
        self._recorded: set[tuple[str, str, str]] = set()
        self._numbers = itertools.count()

    def execute(self, write: Write) -> list[Change]:
        """Execute one write and return the objects it changed."""
        return list(self._changes(write))

    def _changes(self, write: Write) -> Iterator[Change]:
        match write:
            case Create():
                yield from self._create(write)
            case Apply():
                yield from self._apply(write)
            case Patch():
                yield from self._patch(write)
            case Delete():
                yield from self._delete(write)
            case Bind():
                yield from self._bind(write)
            case RecordEvent():
                self._record(write)

    def _create(self, write: Create) -> Iterator[Change]:
        try:
            yield from self._cache_object(
                write.resource, self._client.create(write.resource, write.body, manager=write.manager)
            )
        except errors.Terminating:
            return  # the namespace is terminating: retrying would fail as well
        except errors.ClusterError as error:
            self._record_failure(write, error)
            raise

    def _apply(self, write: Apply) -> Iterator[Change]:
        namespace, name = key_of(write.body)
        status, response = self._client.raw(
            "PATCH",
            write.resource.path(name, namespace),
            query={"fieldManager": write.manager, "force": "true"},
            body=write.body,
            content_type=PatchType.APPLY,
        )
        if status >= 400:  # noqa: PLR2004 - HTTP codes are their own names
            error = errors.from_answer(status, response, {})
            self._record_failure(write, error)
            raise error
        yield from self._cache_object(write.resource, response)

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
        metadata = response["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            # Removing the last finalizer may have deleted the object.
            yield from self._cache_object(write.resource, response)
            yield from self._read_back(write.resource, write.namespace, write.name)
            return
        yield from self._cache_object(write.resource, response)

    def _delete(self, write: Delete) -> Iterator[Change]:
        options: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": write.propagation,
            "preconditions": {"uid": write.uid},
        }
        if write.grace_seconds is not None:
            options["gracePeriodSeconds"] = write.grace_seconds
        status, response = self._client.raw(
            "DELETE", write.resource.path(write.name, write.namespace), body=options
        )
        if status not in (200, 202, 404, 409):
            raise errors.from_answer(status, response, {})
        yield from self._read_back(write.resource, write.namespace, write.name)

    def _bind(self, write: Bind) -> Iterator[Change]:
        namespace, name = key_of(write.pod)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": write.pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": write.node},
        }
        status, response = self._client.raw(
            "POST",
            resources.PODS.path(name, namespace, "binding"),
            query={"fieldManager": SCHEDULER},
            body=binding,
        )
        if status >= 400:  # noqa: PLR2004 - HTTP codes are their own names
            raise errors.from_answer(status, response, {})
        assumed = {**write.pod, "spec": {**write.pod["spec"], "nodeName": write.node}}
        self._cache.amend(resources.PODS, assumed)
        yield resources.PODS, assumed

    def _record(self, write: RecordEvent) -> None:
        about = write.about
        key = (about["metadata"]["uid"], write.reason, write.message)
        if key in self._recorded:
            return
        self._recorded.add(key)
        namespace, name = key_of(about)
        now = timestamp(time.time())
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name}.{uuid.uuid4().hex[:16]}", "namespace": namespace or "default"},
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": name,
                "namespace": namespace,
                "uid": about["metadata"]["uid"],
            },
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

    def _record_failure(self, write: Create | Apply, error: errors.ClusterError) -> None:
        if write.failure:
            self._record(RecordEvent(write.owner, "Warning", write.failure, error.message, write.manager))

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
