"""DELETE: preconditions, grace period, finalizers and propagation policy.

Source (v1.37.1): `apiserver/pkg/registry/generic/registry/store.go` and `pkg/registry/*/strategy.go`.
`collector.py` then deletes dependents and the content of namespaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.admission import chain
from muster.simulator.apiserver.fields import strategies
from muster.simulator.apiserver.http.requests import Request, RequestTarget, Response
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of, uid_of
from muster.simulator.apiserver.store import ObjectRecord, Store, encoded

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
POLICIES = ("Foreground", "Background", "Orphan")
RETURNED_KINDS = frozenset({("", "pods"), ("", "namespaces"), ("", "services"), ("", "serviceaccounts")})
"""Resources whose deletion returns the object; the others return a Status."""

UNDELETABLE_NAMESPACES = frozenset({"default", "kube-public", "kube-system"})
NAMESPACE_BUSY = (
    "The system is ensuring all content is removed from this namespace.  Upon completion, this namespace "
    "will automatically be purged by the system."
)


@dataclass(frozen=True)
class DeleteOptions:
    """The supported options of `metav1.DeleteOptions`; empty and None are the defaults of the kind."""

    propagation: str = ""
    grace: int | None = None
    uid: str = ""


def options_of(request: Request) -> DeleteOptions:
    """Return the options in the body of a request, else in its query; ApiError 400 or 422 if one is wrong."""
    body: Any = (request.json if request.body else {}) or {}
    if not isinstance(body, dict) or body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise refusals.bad_request("the body is no DeleteOptions")
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy") or ""
    if policy and policy not in POLICIES:
        error = refusals.not_supported("propagationPolicy", policy, (*POLICIES, "nil"))
        raise refusals.invalid_object("meta.k8s.io", "DeleteOptions", "", [error])
    grace = body.get("gracePeriodSeconds")
    if grace is None and request.query.get("gracePeriodSeconds"):
        grace = request.integer("gracePeriodSeconds")
    return DeleteOptions(
        propagation=policy,
        grace=grace,
        uid=at(body, "preconditions", "uid") or "",
    )


@dataclass(frozen=True)
class Deleter:
    """Deletes objects, or sets their deletionTimestamp."""

    store: Store

    def delete(self, target: RequestTarget, request: Request) -> Response:
        """DELETE of an object."""
        kind, options = target.kind, options_of(request)
        with self.store.lock:
            record = self.store.get(kind.group_resource, target.key)
            if record is None:
                raise refusals.not_found(kind.group, kind.plural, target.name)
            _check_precondition(kind, record.obj, options)
            old = record.obj | {"apiVersion": kind.api_version}
            chain.validate(self.store, kind, None, old, request.user)
            if request.dry_run:
                return Response(200, encoded(kind.api_version, kind.kind, record))
            deleted, after = self.remove(kind, record, options)
        if deleted and kind.group_resource not in RETURNED_KINDS:
            return Response(200, refusals.success(kind.group, kind.plural, target.name, uid_of(record.obj)))
        return Response(200, encoded(kind.api_version, kind.kind, after))

    def remove(self, kind: Kind, record: ObjectRecord, options: DeleteOptions) -> tuple[bool, ObjectRecord]:
        """Delete an object, or set its deletionTimestamp if a finalizer or a kubelet has to act first."""
        obj = record.obj
        if kind.group_resource == ("", "namespaces"):
            return False, self._terminate_namespace(kind, record)
        finalizers = _finalizers(kind, obj["metadata"], options)
        immediate, seconds = strategies.graceful_deletion(kind, obj, options.grace)
        if not immediate or finalizers or strategies.marks_before_removal(kind):
            record = self._mark(kind, record, finalizers, seconds)
        if not immediate or finalizers:
            return False, record
        return True, self.store.remove(kind.group_resource, (namespace_of(obj), name_of(obj)))

    def _mark(self, kind: Kind, record: ObjectRecord, finalizers: list[str], seconds: int) -> ObjectRecord:
        obj = record.obj
        metadata = dict(obj["metadata"])
        if not metadata.get("deletionTimestamp"):
            metadata = strategies.deletion_metadata(obj, seconds)
        elif seconds == 0:
            metadata["deletionGracePeriodSeconds"] = 0
        metadata.pop("finalizers", None)
        if finalizers:
            metadata["finalizers"] = finalizers
        changed = obj | {"metadata": metadata}
        return record if changed == obj else self.store.put(kind.group_resource, changed)

    def _terminate_namespace(self, kind: Kind, record: ObjectRecord) -> ObjectRecord:
        obj = record.obj
        if name_of(obj) in UNDELETABLE_NAMESPACES:
            raise refusals.refused("", "namespaces", name_of(obj), "this namespace may not be deleted")
        if obj["metadata"].get("deletionTimestamp"):
            raise refusals.conflict("", "namespaces", name_of(obj), NAMESPACE_BUSY)
        metadata = strategies.deletion_metadata(obj, 0)
        metadata.pop("deletionGracePeriodSeconds")
        changed = obj | {"metadata": metadata, "status": {"phase": "Terminating"}}
        return self.store.put(kind.group_resource, changed)


def _check_precondition(kind: Kind, obj: Object, options: DeleteOptions) -> None:
    uid = uid_of(obj)
    if options.uid and options.uid != uid:
        message = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise refusals.conflict(kind.group, kind.kind, name_of(obj), message)


def _finalizers(kind: Kind, metadata: Object, options: DeleteOptions) -> list[str]:
    """Return the finalizers after a DELETE with these options; a Job orphans its dependents by default."""
    current = list(metadata.get("finalizers") or ())
    policy = options.propagation
    if not policy:
        if ORPHAN in current or FOREGROUND in current:
            return current
        policy = "Orphan" if kind.group_resource == ("batch", "jobs") else "Background"
    kept = [name for name in current if name not in {ORPHAN, FOREGROUND}]
    added = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(policy, [])
    return kept + added
