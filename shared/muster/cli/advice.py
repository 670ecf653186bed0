"""What `muster lint`, `explain` and `status` say of owners that are no gang."""

from __future__ import annotations

from collections.abc import Iterator

from muster.cluster.errors import Forbidden
from muster.cluster.interface import Cluster
from muster.objects.resources import NAMESPACES
from muster.policy.group_labels import GROUP, NAMESPACE_SWITCH
from muster.policy.model import NoOp
from muster.policy.owners.job import Job
from muster.policy.owners.kind import OwnerObject
from muster.policy.reasons import Reason
from muster.policy.resolve import LiveOwner

CREATED_BEFORE = "it was created before its namespace had the label, or without Muster; create it again"
"""Why a job of an opted-in namespace has no group labels."""


def why_unmarked(cluster: Cluster, namespace: str) -> str:
    """Return why mark-jobs and mark-jobsets do not act in a namespace; "" if they do."""
    try:
        body = cluster.get(NAMESPACES, namespace) or {"metadata": {}}
    except Forbidden:
        return "the labels of the namespace could not be read"
    value = (body["metadata"].get("labels") or {}).get(NAMESPACE_SWITCH)
    has = "no such label" if value is None else f"the value `{value}`"
    needed = f"jobs are labelled in namespaces with the label {NAMESPACE_SWITCH}: enabled"
    return "" if value == "enabled" else f"{needed}; this one has {has}"


def gang_shaped(owner: OwnerObject) -> bool:
    """Whether the pods of an owner are labelled: of a JobSet, or of a Job whose pods all run at once."""
    if not isinstance(owner, Job):
        return True
    spec = owner.spec
    return owner.metadata.controller is None and spec.indexed and 1 < spec.parallelism == spec.completions


def why_not_marked(cluster: Cluster, live: LiveOwner, skipped: NoOp) -> Iterator[str]:
    """Yield why mark-jobs leaves an owner without group labels (eventing/admission/mark-jobs.yaml)."""
    owner = live.owner
    if skipped.reason != Reason.NOT_MARKED or owner is None:
        return
    unmarked = why_unmarked(cluster, owner.metadata.namespace)
    labels = owner.spec.template.metadata.labels if isinstance(owner, Job) else {}
    if unmarked:
        yield unmarked
    elif live.unmarked or (isinstance(owner, Job) and GROUP not in labels and gang_shaped(owner)):
        yield CREATED_BEFORE
    elif not isinstance(owner, Job) or GROUP in labels:
        yield f"the label {GROUP} of its pod templates is `none`, or no DNS label"
    else:
        spec, controller = owner.spec, owner.metadata.controller
        made_by = f"owner {controller.kind} {controller.name}" if controller else "no owner"
        completions = "unset" if spec.completions is None else spec.completions
        yield (
            "mark-jobs labels new Indexed Jobs without an owner, with parallelism above 1 and as many "
            f"completions; this one has {made_by}, completionMode {spec.completion_mode}, parallelism "
            f"{spec.parallelism}, completions {completions}; for a group create it with the label {GROUP} "
            "in its pod template"
        )
