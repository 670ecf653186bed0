"""Gangs that a namespace's ResourceQuota will never let come together.

Quota is charged pod by pod, gated pods too, and nobody but the Job controller's Events says so
(plugin/pkg/admission/resourcequota, Kubernetes v1.37.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from muster.cluster.observe import list_if_served
from muster.cluster.port import Cluster
from muster.objects.meta import ObjectRef
from muster.objects.resources import JOBS, JOBSETS, RESOURCE_QUOTAS
from muster.policy.groups import Group, full_seats
from muster.policy.kinds import Gang
from muster.policy.ownership import Considered
from muster.simulator.controllers.quantities import milli

_PODS = "pods"


def warnings(cluster: Cluster, considered: Considered) -> Iterator[str]:
    """One line for each gang and each resource of a quota that it needs more of than there is."""
    quotas = list_if_served(cluster, RESOURCE_QUOTAS, considered.gang.named_by.namespace)
    if not quotas:
        return
    templates = _templates(cluster, considered.gang)
    for root in considered.tree:
        for leaf in filter(lambda leaf: leaf.gang, root.leaves()):
            needed = _needed(leaf, templates)
            for quota in quotas:
                yield from _above(leaf, needed, quota)


def _above(leaf: Group, needed: Mapping[str, int], quota: Mapping[str, Any]) -> Iterator[str]:
    hard = (quota.get("spec") or {}).get("hard") or {}
    for resource, limit in sorted(hard.items()):
        # Plain names are requests too: `cpu` and `requests.cpu` are the same.
        asked = needed.get(resource.removeprefix("requests."), 0)
        if asked > milli(str(limit)):
            yield (
                f"group {leaf.name}: {leaf.template_min_count} pods need {resource} {_plain(asked)}, "
                f"ResourceQuota {quota['metadata']['name']} allows {limit}: they will never all exist"
            )


def _plain(thousandths: int) -> str:
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def _needed(leaf: Group, templates: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
    """What minCount pods of a group ask for, in thousandths; pods of several templates in their shares."""
    total: Counter[str] = Counter()
    place = max(leaf.sizes, key=lambda suffix: leaf.sizes[suffix], default="")
    left = leaf.template_min_count
    for pod_set in leaf.pod_sets:
        pods = min(left, full_seats(pod_set)[leaf.name, place])
        left -= pods
        total[_PODS] += pods * 1000
        for name, quantity in _requests(templates.get(pod_set.replicated_job, {})).items():
            total[name] += pods * quantity
    return total


def _requests(pod_spec: Mapping[str, Any]) -> Counter[str]:
    total: Counter[str] = Counter()
    for container in pod_spec.get("containers") or []:
        resources = container.get("resources") or {}
        # What is only limited is requested as well (pkg/apis/core/v1/defaults.go).
        for name, quantity in {
            **(resources.get("limits") or {}),
            **(resources.get("requests") or {}),
        }.items():
            total[name] += milli(str(quantity))
    return total


def _templates(cluster: Cluster, gang: Gang) -> dict[str, Mapping[str, Any]]:
    """The pod specs of an owner by replicatedJob."""
    named_by: ObjectRef = gang.named_by
    if named_by.kind == JOBS.kind:
        job = cluster.get(JOBS, named_by.name, named_by.namespace) or {}
        return {"": job.get("spec", {}).get("template", {}).get("spec", {})}
    jobset = cluster.get(JOBSETS, named_by.name, named_by.namespace) or {}
    entries = jobset.get("spec", {}).get("replicatedJobs") or []
    return {one["name"]: one["template"]["spec"]["template"].get("spec") or {} for one in entries}
