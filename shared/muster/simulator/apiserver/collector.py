"""Garbage collection, namespace termination, removal of CRD instances and of PodGroup finalizers.

On a real cluster controllers do this asynchronously (garbage collector, namespace controller,
podgroup-protection-controller, CRD finalizer); here it runs at the end of each write, with the same order of
events. Source (v1.37.1): `pkg/controller/{garbagecollector,namespace,scheduling/podgroupprotection}`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from muster.simulator.apiserver.admission.chain import FINALIZER, NAMESPACES, POD_GROUPS
from muster.simulator.apiserver.handlers.deletes import FOREGROUND, ORPHAN, DeleteOptions, Deleter
from muster.simulator.apiserver.kinds import Kind, Registry
from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of, uid_of
from muster.simulator.apiserver.refusals import ApiError
from muster.simulator.apiserver.store import GroupResource, ObjectChange, ObjectRecord, Store

PODS: GroupResource = ("", "pods")
DEFINITIONS: GroupResource = ("apiextensions.k8s.io", "customresourcedefinitions")
ENDED_PHASES = frozenset({"Succeeded", "Failed"})


class Collector:
    """Queues every change of the store and processes the queue on `run`."""

    def __init__(self, store: Store, registry: Registry, deleter: Deleter) -> None:
        self._store = store
        self._registry = registry
        self._deleter = deleter
        self._changes: deque[tuple[GroupResource, ObjectChange]] = deque()

    def enqueue(self, resource: GroupResource, change: ObjectChange) -> None:
        """Queue a change; called by the store."""
        self._changes.append((resource, change))

    def discard(self) -> None:
        """Clear the queue: loaded objects are not collected."""
        self._changes.clear()

    def run(self) -> None:
        """Process the queued changes, and those that the processing causes."""
        with self._store.lock:
            while self._changes:
                resource, change = self._changes.popleft()
                if change.type == "DELETED":
                    self._on_removed(resource, change.record.obj)
                else:
                    self._on_written(resource, change)

    def _on_removed(self, resource: GroupResource, obj: Object) -> None:
        for dependent_resource, dependent in self._store.owned_by(uid_of(obj)):
            self._collect(dependent_resource, dependent)
        for reference in at(obj, "metadata", "ownerReferences") or []:
            self._continue_foreground_deletion(reference.get("uid", ""))
        if resource == PODS:
            self._finish_pod_group(obj)
        self._finish_namespace(namespace_of(obj))
        if resource == DEFINITIONS:
            self._registry.define(name_of(obj), ())

    def _on_written(self, resource: GroupResource, change: ObjectChange) -> None:
        live = self._live(resource, change.record.obj)
        if live is None:
            return
        obj = live.obj
        if obj["metadata"].get("deletionTimestamp"):
            self._on_terminating(resource, live)
        elif change.type == "ADDED" and obj["metadata"].get("ownerReferences"):
            self._collect(resource, live, is_new=True)
        if resource == PODS and at(obj, "status", "phase") in ENDED_PHASES:
            self._finish_pod_group(obj)

    def _on_terminating(self, resource: GroupResource, live: ObjectRecord) -> None:
        obj, finalizers = live.obj, at(live.obj, "metadata", "finalizers") or []
        if resource == NAMESPACES:
            self._delete_namespace_content(name_of(obj))
        elif ORPHAN in finalizers:
            self._orphan_dependents(resource, live)
        elif FOREGROUND in finalizers:
            self._continue_foreground_deletion(uid_of(obj))
        elif resource == POD_GROUPS and FINALIZER in finalizers:
            self._unprotect(live)
        elif not finalizers and not obj["metadata"].get("deletionGracePeriodSeconds"):
            self._store.remove(resource, (namespace_of(obj), name_of(obj)))

    def _live(self, resource: GroupResource, obj: Object) -> ObjectRecord | None:
        record = self._store.get(resource, (namespace_of(obj), name_of(obj)))
        return record if record is not None and uid_of(record.obj) == uid_of(obj) else None

    def _exists(self, reference: Object, dependent: Object) -> bool:
        """Whether an owner of that UID and name exists in reach."""
        located = self._store.with_uid(reference.get("uid", ""))
        if located is None or name_of(located[1].obj) != reference.get("name"):
            return False
        return namespace_of(located[1].obj) in {"", namespace_of(dependent)}

    def _collect(self, resource: GroupResource, record: ObjectRecord, *, is_new: bool = False) -> None:
        """Delete a dependent if none of its owners exists; remove dangling references if some do."""
        references = at(record.obj, "metadata", "ownerReferences") or []
        existing = [reference for reference in references if self._exists(reference, record.obj)]
        kind = self._kind(resource)
        if kind is None or len(existing) == len(references):
            return
        if existing:
            self._set(resource, record, "ownerReferences", existing)
        elif not is_new or not self._has_unserved_owner(record.obj):
            self._delete(kind, record)

    def _has_unserved_owner(self, obj: Object) -> bool:
        """Whether the kind of an owner is not served; the real collector then keeps the dependent."""
        references = at(obj, "metadata", "ownerReferences") or []
        return any(
            self._registry.of_object(r.get("apiVersion", ""), r.get("kind", "")) is None for r in references
        )

    def _set(self, resource: GroupResource, record: ObjectRecord, field: str, entries: list[Any]) -> None:
        """Store an object with a list in its metadata; an empty one is left out."""
        metadata = {key: value for key, value in record.obj["metadata"].items() if key != field}
        if entries:
            metadata[field] = entries
        self._store.put(resource, record.obj | {"metadata": metadata})

    def _orphan_dependents(self, resource: GroupResource, owner: ObjectRecord) -> None:
        uid = uid_of(owner.obj)
        for dependent_resource, dependent in self._store.owned_by(uid):
            references = dependent.obj["metadata"]["ownerReferences"]
            others = [one for one in references if one.get("uid") != uid]
            self._set(dependent_resource, dependent, "ownerReferences", others)
        self._drop_finalizer(resource, owner, ORPHAN)

    def _continue_foreground_deletion(self, uid: str) -> None:
        """Delete the dependents that block a foreground deletion; without any, remove its finalizer."""
        located = self._store.with_uid(uid)
        if located is None:
            return
        owner_resource, owner = located
        if FOREGROUND not in (at(owner.obj, "metadata", "finalizers") or []):
            return
        if not owner.obj["metadata"].get("deletionTimestamp"):
            return
        blocking = [
            (resource, record)
            for resource, record in self._store.owned_by(uid)
            if any(
                reference.get("uid") == uid and reference.get("blockOwnerDeletion")
                for reference in record.obj["metadata"]["ownerReferences"]
            )
        ]
        if not blocking:
            self._drop_finalizer(owner_resource, owner, FOREGROUND)
            return
        for resource, record in blocking:
            self._delete_blocking(resource, record, uid)

    def _delete_blocking(self, resource: GroupResource, record: ObjectRecord, owner: str) -> None:
        kind = self._kind(resource)
        references = record.obj["metadata"]["ownerReferences"]
        others = [each for each in references if each["uid"] != owner and self._exists(each, record.obj)]
        if others:
            self._set(resource, record, "ownerReferences", others)
        elif kind is not None and not record.obj["metadata"].get("deletionTimestamp"):
            has_dependents = bool(self._store.owned_by(uid_of(record.obj)))
            self._delete(kind, record, "Foreground" if has_dependents else "Background")

    def _drop_finalizer(self, resource: GroupResource, record: ObjectRecord, finalizer: str) -> None:
        finalizers = at(record.obj, "metadata", "finalizers") or []
        self._set(resource, record, "finalizers", [name for name in finalizers if name != finalizer])

    def _delete(self, kind: Kind, record: ObjectRecord, propagation: str = "Background") -> None:
        live = self._live(kind.group_resource, record.obj)
        if live is not None:
            try:
                self._deleter.remove(kind, live, DeleteOptions(propagation=propagation))
            except ApiError:
                return  # 409: the namespace is terminating already

    def _kind(self, resource: GroupResource) -> Kind | None:
        return self._registry.stored_kinds().get(resource)

    def _delete_namespace_content(self, name: str) -> None:
        for resource, record in self._store.snapshot():
            kind = self._kind(resource)
            if namespace_of(record.obj) == name and kind is not None:
                self._delete(kind, record)
        self._finish_namespace(name)

    def _finish_namespace(self, name: str) -> None:
        record = self._store.get(NAMESPACES, ("", name)) if name else None
        if record is None or not record.obj["metadata"].get("deletionTimestamp"):
            return
        if any(namespace_of(other.obj) == name for _, other in self._store.snapshot()):
            return
        if at(record.obj, "metadata", "finalizers"):
            return
        self._store.remove(NAMESPACES, ("", name))

    def _unprotect(self, group: ObjectRecord) -> None:
        """Remove the finalizer of a PodGroup unless a pod that has not ended refers to it."""
        for pod in self._store.all(PODS, namespace_of(group.obj)):
            member = at(pod.obj, "spec", "schedulingGroup", "podGroupName") == name_of(group.obj)
            if member and at(pod.obj, "status", "phase") not in ENDED_PHASES:
                return
        self._drop_finalizer(POD_GROUPS, group, FINALIZER)

    def _finish_pod_group(self, pod: Object) -> None:
        name = at(pod, "spec", "schedulingGroup", "podGroupName")
        group = self._store.get(POD_GROUPS, (namespace_of(pod), name)) if name else None
        if group is not None and group.obj["metadata"].get("deletionTimestamp"):
            self._unprotect(group)
