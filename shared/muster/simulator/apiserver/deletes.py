"""DELETE: preconditions, grace, finalizers and propagation.

Source (v1.37.1): `apiserver/pkg/registry/generic/registry/store.go` and `pkg/registry/*/strategy.go`. What
follows from a deletion, for dependents and namespaces, is `collector.py`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from muster.simulator.apiserver import strategies
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of, uid_of
from muster.simulator.apiserver.reads import listed
from muster.simulator.apiserver.requests import Answer, Request, Target
from muster.simulator.apiserver.status import (
    bad_request,
    conflict,
    invalid_object,
    not_found,
    not_supported,
    refused,
    success,
)
from muster.simulator.apiserver.store import Record, Store, encoded

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""Keeps a CustomResourceDefinition until its objects are gone."""

POLICIES = ("Foreground", "Background", "Orphan")
RETURNED = frozenset({("", "pods"), ("", "namespaces"), ("", "services"), ("", "serviceaccounts")})
"""Kinds whose deletion answers with the object; the others answer with a Status."""

IMMORTAL = frozenset({"default", "kube-public", "kube-system"})
NAMESPACE_BUSY = (
    "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace "
    "will automatically be purged by the system."
)


@dataclass(frozen=True)
class DeleteOptions:
    """How an object is to be deleted; the fields are those of `metav1.DeleteOptions`."""

    propagation: str = ""
    grace: int | None = None
    uid: str = ""
    version: str = ""
    dry_run: bool = False


def options_of(request: Request) -> DeleteOptions:
    """The options in the body, else in the query.

    Raises:
        ApiError: 400 or 422, they cannot be read.
    """
    body: Any = request.json if request.body else {}
    if not isinstance(body, dict):
        raise bad_request("the body is no DeleteOptions")
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request(f'{body.get("kind")} in version "v1" cannot be handled as a DeleteOptions')
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy") or ""
    if not policy and (body.get("orphanDependents") or request.query.get("orphanDependents") == "true"):
        policy = "Orphan"
    if policy and policy not in POLICIES:
        error = not_supported("propagationPolicy", policy, (*POLICIES, "nil"))
        raise invalid_object("meta.k8s.io", "DeleteOptions", "", [error])
    grace = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    return DeleteOptions(
        propagation=policy,
        grace=None if grace is None else int(grace),
        uid=at(body, "preconditions", "uid") or "",
        version=at(body, "preconditions", "resourceVersion") or "",
        dry_run=request.dry_run or bool(body.get("dryRun")),
    )


@dataclass(frozen=True)
class Deleter:
    """Deletes objects, or marks them for deletion.

    Attributes:
        store: where they are.
        selects: builds the matcher of a collection's selectors.
    """

    store: Store
    selects: Callable[[Kind, Target, Request], Callable[[Object], bool]]

    def delete(self, target: Target, request: Request) -> Answer:
        """DELETE of one object."""
        kind, options = target.kind, options_of(request)
        with self.store.lock:
            record = self.store.get(kind.storage, target.key)
            if record is None:
                raise not_found(kind.group, kind.plural, target.name)
            gone, after = self.remove(kind, record, options)
        if gone and kind.storage not in RETURNED:
            return Answer(200, success(kind.group, kind.plural, target.name, uid_of(record.obj)))
        return Answer(200, encoded(kind.api_version, kind.kind, after))

    def delete_all(self, target: Target, request: Request) -> Answer:
        """DELETE of a collection; answers with the list of what was deleted."""
        kind, options = target.kind, options_of(request)
        matches = self.selects(kind, target, request)
        found = []
        with self.store.lock:
            for record in self.store.all(kind.storage, target.namespace):
                if matches(record.obj):
                    self.remove(kind, record, options)
                    found.append(record)
        items = b",".join(listed(kind, record) for record in found)
        head = (
            f'{{"kind":"{kind.kind}List","apiVersion":"{kind.api_version}","metadata":{{"resourceVersion":"'
        )
        return Answer(200, head.encode() + str(self.store.version).encode() + b'"},"items":[' + items + b"]}")

    def remove(self, kind: Kind, record: Record, options: DeleteOptions) -> tuple[bool, Record]:
        """Delete an object, or mark it where a finalizer or its kubelet still has to act.

        Returns:
            Whether it is gone, and the object as it was or is now.
        """
        obj = record.obj
        _check_preconditions(kind, obj, options)
        if kind.storage == ("", "namespaces"):
            return False, self._namespace(kind, record, options)
        finalizers = _finalizers(kind, obj["metadata"], options)
        at_once, seconds = strategies.deleted_at_once(kind, obj, options.grace)
        if not at_once or finalizers or strategies.announces_deletion(kind):
            record = self._mark(kind, record, finalizers, seconds, dry_run=options.dry_run)
        if not at_once or finalizers:
            return False, record
        if not options.dry_run:
            gone = self.store.remove(kind.storage, (namespace_of(obj), name_of(obj)))
            return True, gone
        return True, record

    def _mark(
        self, kind: Kind, record: Record, finalizers: list[str], seconds: int, *, dry_run: bool
    ) -> Record:
        obj = record.obj
        metadata = dict(obj["metadata"])
        if not metadata.get("deletionTimestamp"):
            metadata = strategies.deletion_mark(obj, seconds)
        elif seconds == 0:
            metadata["deletionGracePeriodSeconds"] = 0
        metadata.pop("finalizers", None)
        if finalizers:
            metadata["finalizers"] = finalizers
        changed = obj | {"metadata": metadata}
        if changed == obj:
            return record
        return Record(changed) if dry_run else self.store.put(kind.storage, changed)

    def _namespace(self, kind: Kind, record: Record, options: DeleteOptions) -> Record:
        obj = record.obj
        if name_of(obj) in IMMORTAL:
            raise refused("", "namespaces", name_of(obj), "this namespace may not be deleted")
        if obj["metadata"].get("deletionTimestamp"):
            raise conflict("", "namespaces", name_of(obj), NAMESPACE_BUSY)
        metadata = strategies.deletion_mark(obj, 0)
        metadata.pop("deletionGracePeriodSeconds")
        changed = obj | {"metadata": metadata, "status": {"phase": "Terminating"}}
        return Record(changed) if options.dry_run else self.store.put(kind.storage, changed)


def _check_preconditions(kind: Kind, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    uid, version = metadata.get("uid"), metadata.get("resourceVersion")
    if options.uid and options.uid != uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(kind.group, kind.kind, name_of(obj), why)
    if options.version and options.version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion "
            f"in record ({version}). The object might have been modified"
        )
        raise conflict(kind.group, kind.kind, name_of(obj), why)


def _finalizers(kind: Kind, metadata: Object, options: DeleteOptions) -> list[str]:
    """The finalizers after a deletion with this propagation; a Job's dependents are orphaned by default."""
    given = list(metadata.get("finalizers") or ())
    policy = options.propagation
    if not policy:
        if ORPHAN in given or FOREGROUND in given:
            return given
        policy = "Orphan" if kind.storage == ("batch", "jobs") else "Background"
    kept = [name for name in given if name not in {ORPHAN, FOREGROUND}]
    if kind.storage == ("apiextensions.k8s.io", "customresourcedefinitions") and CLEANUP not in kept:
        kept.append(CLEANUP)
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    return kept + added
