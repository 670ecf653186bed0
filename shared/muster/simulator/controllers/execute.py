"""Carrying out a write, and taking what the API server answered into the cache."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterator

from muster.cluster import errors
from muster.cluster.client import Client
from muster.cluster.port import Object, PatchType
from muster.objects import resources
from muster.objects.resources import Resource
from muster.simulator.controllers.fields import key_of, timestamp
from muster.simulator.controllers.store import Store
from muster.simulator.controllers.writes import Apply, Bind, Create, Delete, Patch, Record, Write

SCHEDULER = "kube-scheduler"

Change = tuple[Resource, Object]
"""An object the cache took, or lost, because of a write."""


class Executor:
    """Writes through one client; every answer goes into the store before the next write."""

    def __init__(self, client: Client, store: Store) -> None:
        self._client = client
        self._store = store
        self._recorded: set[tuple[str, str, str]] = set()
        self._numbers = itertools.count()

    def execute(self, write: Write) -> list[Change]:
        """Make one write and return what it changed.

        Raises:
            ClusterError: the server refused or did not answer.
        """
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
            case Record():
                self._record(write)

    def _create(self, write: Create) -> Iterator[Change]:
        try:
            yield from self._taken(
                write.resource, self._client.create(write.resource, write.body, manager=write.manager)
            )
        except errors.Terminating:
            return  # the namespace is going: every later create would fail as well
        except errors.ClusterError as error:
            self._complain(write, error)
            raise

    def _apply(self, write: Apply) -> Iterator[Change]:
        namespace, name = key_of(write.body)
        status, answer = self._client.raw(
            "PATCH",
            write.resource.path(name, namespace),
            query={"fieldManager": write.manager, "force": "true"},
            body=write.body,
            content_type=PatchType.APPLY,
        )
        if status >= 400:  # noqa: PLR2004 - HTTP codes are their own names
            error = errors.from_answer(status, answer, {})
            self._complain(write, error)
            raise error
        yield from self._taken(write.resource, answer)

    def _patch(self, write: Patch) -> Iterator[Change]:
        try:
            answer = self._client.patch(
                write.resource,
                write.name,
                write.namespace,
                write.body,
                patch=write.patch,
                manager=write.manager,
                subresource=write.subresource,
            )
        except errors.Gone:
            yield from self._looked_up(write.resource, write.namespace, write.name)
            return
        metadata = answer["metadata"]
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            # taking the last finalizer away may have ended the object
            yield from self._taken(write.resource, answer)
            yield from self._looked_up(write.resource, write.namespace, write.name)
            return
        yield from self._taken(write.resource, answer)

    def _delete(self, write: Delete) -> Iterator[Change]:
        options: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": write.propagation,
            "preconditions": {"uid": write.uid},
        }
        if write.grace_seconds is not None:
            options["gracePeriodSeconds"] = write.grace_seconds
        status, answer = self._client.raw(
            "DELETE", write.resource.path(write.name, write.namespace), body=options
        )
        if status not in (200, 202, 404, 409):
            raise errors.from_answer(status, answer, {})
        yield from self._looked_up(write.resource, write.namespace, write.name)

    def _bind(self, write: Bind) -> Iterator[Change]:
        namespace, name = key_of(write.pod)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": write.pod["metadata"]["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": write.node},
        }
        status, answer = self._client.raw(
            "POST",
            resources.PODS.path(name, namespace, "binding"),
            query={"fieldManager": SCHEDULER},
            body=binding,
        )
        if status >= 400:  # noqa: PLR2004 - HTTP codes are their own names
            raise errors.from_answer(status, answer, {})
        assumed = {**write.pod, "spec": {**write.pod["spec"], "nodeName": write.node}}
        self._store.amend(resources.PODS, assumed)
        yield resources.PODS, assumed

    def _record(self, write: Record) -> None:
        about = write.about
        same = (about["metadata"]["uid"], write.reason, write.message)
        if same in self._recorded:
            return
        self._recorded.add(same)
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
            self._recorded.discard(same)  # an Event is never worth stopping for

    def _complain(self, write: Create | Apply, error: errors.ClusterError) -> None:
        if write.failure:
            self._record(Record(write.owner, "Warning", write.failure, error.message, write.manager))

    def _taken(self, resource: Resource, item: Object) -> Iterator[Change]:
        if self._store.put(resource, item):
            yield resource, item

    def _looked_up(self, resource: Resource, namespace: str, name: str) -> Iterator[Change]:
        """What a deletion left: nothing, or an object that a finalizer or a kubelet still holds."""
        known = self._store.get(resource, namespace, name)
        found = self._client.get(resource, name, namespace)
        if known and (found is None or found["metadata"]["uid"] != known["metadata"]["uid"]):
            self._store.remove(resource, known)
            yield resource, known
        if found is not None:
            yield from self._taken(resource, found)
