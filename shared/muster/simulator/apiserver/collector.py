"""What follows from a deletion: dependents, terminating namespaces, PodGroups that nobody needs any more.

On a real cluster three controllers do this some milliseconds later (garbage collector, namespace controller,
podgroup-protection-controller); here it happens right after the request that caused it, in the same order of
events. Source (v1.37.1): `pkg/controller/{garbagecollector,namespace,scheduling/podgroupprotection}`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from muster.simulator.apiserver.admission import FINALIZER
from muster.simulator.apiserver.deletes import CLEANUP, FOREGROUND, ORPHAN, DeleteOptions, Deleter
from muster.simulator.apiserver.kinds import SCHEDULING, Kind, Registry
from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of, uid_of
from muster.simulator.apiserver.status import ApiError
from muster.simulator.apiserver.store import Change, Place, Record, Store

NAMESPACES: Place = ("", "namespaces")
PODS: Place = ("", "pods")
POD_GROUPS: Place = (SCHEDULING, "podgroups")
DEFINITIONS: Place = ("apiextensions.k8s.io", "customresourcedefinitions")
ENDED = frozenset({"Succeeded", "Failed"})


class Collector:
    """Takes note of every change and, when asked, does what follows from them."""

    def __init__(
        self, store: Store, registry: Registry, deleter: Deleter, undefined: Callable[[str], None]
    ) -> None:
        self._store = store
        self._registry = registry
        self._deleter = deleter
        self._undefined = undefined
        self._changes: deque[tuple[Place, Change]] = deque()

    def note(self, place: Place, change: Change) -> None:
        """Remember a change; called by the store."""
        self._changes.append((place, change))

    def forget(self) -> None:
        """Leave what was noted undone: the objects were recorded elsewhere, with all that followed."""
        self._changes.clear()

    def run(self) -> None:
        """Do what follows from the changes noted, and from the changes that makes."""
        with self._store.lock:
            while self._changes:
                place, change = self._changes.popleft()
                if change.type == "DELETED":
                    self._removed(place, change.record.obj)
                else:
                    self._present(place, change)

    def _removed(self, place: Place, obj: Object) -> None:
        for dependent_place, dependent in self._store.owned_by(uid_of(obj)):
            self._without_owner(dependent_place, dependent)
        for reference in at(obj, "metadata", "ownerReferences") or []:
            self._foreground(reference.get("uid", ""))
        if place == PODS:
            self._release_group(obj)
        self._finish_namespace(namespace_of(obj))
        if place == DEFINITIONS:
            self._undefined(name_of(obj))

    def _present(self, place: Place, change: Change) -> None:
        live = self._live(place, change.record.obj)
        if live is None:
            return
        obj = live.obj
        if obj["metadata"].get("deletionTimestamp"):
            self._leaving(place, live)
        elif change.type == "ADDED" and obj["metadata"].get("ownerReferences"):
            self._without_owner(place, live, at_birth=True)
        if place == PODS and at(obj, "status", "phase") in ENDED:
            self._release_group(obj)

    def _leaving(self, place: Place, live: Record) -> None:
        obj, finalizers = live.obj, at(live.obj, "metadata", "finalizers") or []
        if place == NAMESPACES:
            self._empty_namespace(name_of(obj))
        elif place == DEFINITIONS and CLEANUP in finalizers:
            self._undefine(live)
        elif ORPHAN in finalizers:
            self._orphan(place, live)
        elif FOREGROUND in finalizers:
            self._foreground(uid_of(obj))
        elif place == POD_GROUPS and FINALIZER in finalizers:
            self._protect(live)
        elif not finalizers and not obj["metadata"].get("deletionGracePeriodSeconds"):
            self._store.remove(place, (namespace_of(obj), name_of(obj)))

    def _live(self, place: Place, obj: Object) -> Record | None:
        record = self._store.get(place, (namespace_of(obj), name_of(obj)))
        return record if record is not None and uid_of(record.obj) == uid_of(obj) else None

    def _owners(self, obj: Object) -> list[tuple[Object, bool]]:
        """The owner references of an object and whether their owner is there: its UID, in reach."""
        found = []
        for reference in at(obj, "metadata", "ownerReferences") or []:
            held = self._store.with_uid(reference.get("uid", ""))
            owner = held[1].obj if held else None
            reachable = owner is not None and namespace_of(owner) in {"", namespace_of(obj)}
            found.append((reference, reachable and name_of(owner or {}) == reference.get("name")))
        return found

    def _without_owner(self, place: Place, record: Record, *, at_birth: bool = False) -> None:
        """Delete a dependent whose owners are all gone; take only the reference where others are left."""
        owners = self._owners(record.obj)
        left = [reference for reference, there in owners if there]
        if len(left) == len(owners):
            return
        kind = self._kind(place)
        if kind is None:
            return
        if left:
            self._set_owners(place, record, left)
        elif not at_birth or not self._unreadable(record.obj):
            self._delete(kind, record)

    def _unreadable(self, obj: Object) -> bool:
        """Whether an owner is of a kind that is not served: the real collector then waits for the kind."""
        references = at(obj, "metadata", "ownerReferences") or []
        return any(
            self._registry.of_object(r.get("apiVersion", ""), r.get("kind", "")) is None for r in references
        )

    def _set_owners(self, place: Place, record: Record, references: list[Object]) -> None:
        metadata = dict(record.obj["metadata"])
        metadata.pop("ownerReferences", None)
        if references:
            metadata["ownerReferences"] = references
        self._store.put(place, record.obj | {"metadata": metadata})

    def _orphan(self, place: Place, owner: Record) -> None:
        uid = uid_of(owner.obj)
        for dependent_place, dependent in self._store.owned_by(uid):
            references = dependent.obj["metadata"]["ownerReferences"]
            self._set_owners(dependent_place, dependent, [r for r in references if r.get("uid") != uid])
        self._drop_finalizer(place, owner, ORPHAN)

    def _foreground(self, uid: str) -> None:
        """Delete what blocks an owner that is deleted in the foreground, then the owner."""
        held = self._store.with_uid(uid)
        if held is None or FOREGROUND not in (at(held[1].obj, "metadata", "finalizers") or []):
            return
        if not held[1].obj["metadata"].get("deletionTimestamp"):
            return
        blocking = [
            (place, record)
            for place, record in self._store.owned_by(uid)
            if any(
                reference.get("uid") == uid and reference.get("blockOwnerDeletion")
                for reference in record.obj["metadata"]["ownerReferences"]
            )
        ]
        if not blocking:
            self._drop_finalizer(held[0], held[1], FOREGROUND)
            return
        for place, record in blocking:
            self._delete_below(place, record, uid)

    def _delete_below(self, place: Place, record: Record, owner: str) -> None:
        kind = self._kind(place)
        others = [
            reference for reference, there in self._owners(record.obj) if there and reference["uid"] != owner
        ]
        if others:
            self._set_owners(place, record, others)
        elif kind is not None and not record.obj["metadata"].get("deletionTimestamp"):
            has_dependents = bool(self._store.owned_by(uid_of(record.obj)))
            self._delete(kind, record, "Foreground" if has_dependents else "Background")

    def _drop_finalizer(self, place: Place, record: Record, finalizer: str) -> None:
        metadata = dict(record.obj["metadata"])
        kept = [name for name in metadata.get("finalizers") or [] if name != finalizer]
        metadata.pop("finalizers", None)
        if kept:
            metadata["finalizers"] = kept
        self._store.put(place, record.obj | {"metadata": metadata})

    def _delete(self, kind: Kind, record: Record, propagation: str = "Background") -> None:
        live = self._live(kind.storage, record.obj)
        if live is not None:
            try:
                self._deleter.remove(kind, live, DeleteOptions(propagation=propagation))
            except ApiError:
                return  # a namespace that is terminating already

    def _kind(self, place: Place) -> Kind | None:
        return self._registry.stored().get(place)

    def _empty_namespace(self, name: str) -> None:
        for place, record in list(self._store.everything()):
            kind = self._kind(place)
            if namespace_of(record.obj) == name and kind is not None:
                self._delete(kind, record)
        self._finish_namespace(name)

    def _finish_namespace(self, name: str) -> None:
        record = self._store.get(NAMESPACES, ("", name)) if name else None
        if record is None or not record.obj["metadata"].get("deletionTimestamp"):
            return
        if any(namespace_of(other.obj) == name for _, other in self._store.everything()):
            return
        if at(record.obj, "metadata", "finalizers"):
            return
        self._store.remove(NAMESPACES, ("", name))

    def _undefine(self, record: Record) -> None:
        place = (record.obj["spec"]["group"], record.obj["spec"]["names"]["plural"])
        kind = self._kind(place)
        if kind is not None:
            for instance in self._store.all(place):
                self._delete(kind, instance)
        if not self._store.all(place):
            self._drop_finalizer(DEFINITIONS, record, CLEANUP)

    def _protect(self, group: Record) -> None:
        """Let a PodGroup go when no pod that has not ended names it."""
        for pod in self._store.all(PODS, namespace_of(group.obj)):
            named = at(pod.obj, "spec", "schedulingGroup", "podGroupName") == name_of(group.obj)
            if named and at(pod.obj, "status", "phase") not in ENDED:
                return
        self._drop_finalizer(POD_GROUPS, group, FINALIZER)

    def _release_group(self, pod: Object) -> None:
        name = at(pod, "spec", "schedulingGroup", "podGroupName")
        group = self._store.get(POD_GROUPS, (namespace_of(pod), name)) if name else None
        if group is None or not group.obj["metadata"].get("deletionTimestamp"):
            return
        if FINALIZER in (at(group.obj, "metadata", "finalizers") or []):
            self._protect(group)
