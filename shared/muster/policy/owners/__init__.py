"""The kinds of owners: one file each, and their registry. A new kind is a file and its name here."""

from __future__ import annotations

from muster.objects.meta import KubernetesObject, ObjectRef, OwnerReference
from muster.policy.owners.job import JOB
from muster.policy.owners.jobset import JOBSET
from muster.policy.owners.kind import OwnerKind, OwnerObject
from muster.policy.owners.trainjob import TRAINJOB

KINDS: list[OwnerKind] = [TRAINJOB, JOBSET, JOB]
"""All kinds, those that make others first."""


def owner_kind(group: str, kind: str) -> OwnerKind | None:
    """Return the owner kind of an API group and kind, or None: Volcano has a Job, too."""
    for known in KINDS:
        if (known.resource.group, known.resource.kind) == (group, kind):
            return known
    return None


def kind_of(named: ObjectRef | OwnerReference | KubernetesObject) -> OwnerKind | None:
    """Return the kind of an object or of a reference to one, in any version; None if it is no owner's."""
    return owner_kind(named.api_version.rpartition("/")[0], named.kind)


def known_kind_of(named: ObjectRef | KubernetesObject) -> OwnerKind:
    """Return the kind of an object that was read as an owner; else raises LookupError."""
    kind = kind_of(named)
    if kind is None:
        raise LookupError(f"{named.kind} of {named.api_version} is not an owner kind")
    return kind


def runs_as(kind: OwnerKind) -> OwnerKind:
    """Return the kind of the objects that create an owner's Jobs or pods: itself, or a TrainJob's JobSet."""
    resource = kind.runs_as
    return kind if resource is None else owner_kind(resource.group, resource.kind) or kind


def workload_name(owner: OwnerObject) -> str:
    """Return the name of the Workload that Muster makes for an owner."""
    return known_kind_of(owner).workload_name(owner.ref)


def parent_of(child: OwnerObject) -> ObjectRef | None:
    """Return the TrainJob of a JobSet, or the JobSet of a Job; None for a root owner."""
    controller = child.metadata.controller
    kind = None if controller is None else kind_of(controller)
    if controller is None or kind is None:
        return None
    child_resource = known_kind_of(child).resource
    runs_it = kind.runs_as == child_resource and controller.name == child.metadata.name
    is_parent = runs_it or kind.makes == child_resource
    return controller.ref_in(child.metadata.namespace) if is_parent else None
