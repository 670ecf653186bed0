"""DELETE: preconditions, grace period, finalizers and propagation policy.

Source (v1.37.1): `apiserver/pkg/registry/generic/registry/store.go` and `pkg/registry/*/strategy.go`.
`collector.py` then deletes dependents and the content of namespaces.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.admission import chain
from muster.simulator.apiserver.fields import strategies
from muster.simulator.apiserver.http import Request, RequestTarget, Response
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of, uid_of
from muster.simulator.apiserver.store import ObjectRecord, Store, encoded

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
RETURNED_KINDS = frozenset({("", "pods"), ("", "namespaces"), ("", "services"), ("", "serviceaccounts")})
"""Resources whose deletion returns the object; the others return a Status."""


@dataclass(frozen=True)
class DeleteOptions:
    """The supported options of `metav1.DeleteOptions`; empty and None are the defaults of the kind."""

    propagation: str = ""
    grace: int | None = None
    uid: str = ""


def _options_of(request: Request) -> DeleteOptions:
    """Return the options in the body of a request, else in its query."""
    body: Any = request.json or {}
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy") or ""
    return DeleteOptions(policy, body.get("gracePeriodSeconds"), at(body, "preconditions", "uid") or "")


@dataclass(frozen=True)
class Deleter:
    """Deletes objects, or sets their deletionTimestamp."""

    store: Store

    def delete(self, target: RequestTarget, request: Request) -> Response:
        """DELETE of an object."""
        kind, options = target.kind, _options_of(request)
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
            details = refusals.details(kind.group, kind.plural, target.name) | {"uid": uid_of(record.obj)}
            status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            return Response(200, {**status, "details": details})
        return Response(200, encoded(kind.api_version, kind.kind, after))

    def evict(self, target: RequestTarget, request: Request) -> Response:
        """POST of an Eviction of a pod; there are no PodDisruptionBudgets (`pod/storage/eviction.go`)."""
        options = json.dumps(request.json.get("deleteOptions")).encode()
        self.delete(target, replace(request, body=options))
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return Response(201, status)

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
        if obj["metadata"].get("deletionTimestamp"):
            raise refusals.conflict("", "namespaces", name_of(obj), "its content is being removed")
        metadata = strategies.deletion_metadata(obj, 0)
        metadata.pop("deletionGracePeriodSeconds")
        changed = obj | {"metadata": metadata, "status": {"phase": "Terminating"}}
        return self.store.put(kind.group_resource, changed)


def _check_precondition(kind: Kind, obj: Object, options: DeleteOptions) -> None:
    if options.uid and options.uid != uid_of(obj):
        raise refusals.conflict(
            kind.group, kind.kind, name_of(obj), "it does not have the UID of the request"
        )


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
