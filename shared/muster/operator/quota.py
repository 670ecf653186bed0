"""Warn of gangs that a namespace's ResourceQuota keeps from ever having all their pods.

Quota is charged when a pod is created, for gated pods too, and only the Events of the Job controller report
it (plugin/pkg/admission/resourcequota, Kubernetes v1.37.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from muster.cluster.interface import Cluster
from muster.cluster.read import list_if_served
from muster.objects.quantities import milli
from muster.objects.resources import JOBS, JOBSETS, RESOURCE_QUOTAS
from muster.policy.owners.kind import OwnerPodSets
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.groups import Group


def quota_warnings(cluster: Cluster, owner: ResolvedOwner) -> Iterator[str]:
    """Yield a line per gang and resource of which minCount pods request more than a quota allows."""
    quotas = list_if_served(cluster, RESOURCE_QUOTAS, owner.pod_sets.named_by.namespace)
    smallest: dict[str, tuple[int, str, Any]] = {}
    for quota in quotas:
        for resource, limit in ((quota.get("spec") or {}).get("hard") or {}).items():
            allowed = milli(str(limit))
            if resource not in smallest or allowed < smallest[resource][0]:
                smallest[resource] = allowed, quota["metadata"]["name"], limit
    if not smallest:
        return
    pod_specs = _pod_specs(cluster, owner.pod_sets)
    for leaf in (leaf for root in owner.tree for leaf in root.leaves() if leaf.gang):
        requests = _gang_requests(leaf, pod_specs)
        for resource, (allowed, name, limit) in sorted(smallest.items()):
            # In a quota, `cpu` means the same as `requests.cpu`.
            requested = requests[resource.removeprefix("requests.")]
            if requested > allowed:
                amount = f"{requested}m" if requested % 1000 else requested // 1000
                yield (
                    f"group {leaf.name}: {leaf.template_min_count} pods need {resource} {amount}, "
                    f"ResourceQuota {name} allows {limit}: they can never all exist"
                )


def _gang_requests(leaf: Group, pod_specs: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
    """Return the requests of minCount pods of a group by resource, in thousandths.

    The pods are taken from the group's pod sets in order, at most as many as the largest instance of the
    group has of each.
    """
    total: Counter[str] = Counter()
    largest = max(leaf.sizes, key=lambda suffix: leaf.sizes[suffix], default="")
    remaining = leaf.template_min_count
    for pod_set, most in leaf.parts.get(largest, ()):
        pods = min(remaining, most)
        remaining -= pods
        total["pods"] += pods * 1000
        for container in pod_specs.get(pod_set.replicated_job, {}).get("containers") or []:
            resources = container.get("resources") or {}
            # A limit without a request is defaulted to be the request (pkg/apis/core/v1/defaults.go).
            requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
            for name, quantity in requests.items():
                total[name] += pods * milli(str(quantity))
    return total


def _pod_specs(cluster: Cluster, pod_sets: OwnerPodSets) -> dict[str, Mapping[str, Any]]:
    """Return the pod specs of an owner by replicatedJob; "" for a plain Job."""
    ref = pod_sets.named_by
    if ref.kind == JOBS.kind:
        job = cluster.get(JOBS, ref.name, ref.namespace) or {}
        return {"": job.get("spec", {}).get("template", {}).get("spec", {})}
    jobset = cluster.get(JOBSETS, ref.name, ref.namespace) or {}
    replicated_jobs = jobset.get("spec", {}).get("replicatedJobs") or []
    return {
        entry["name"]: entry["template"]["spec"]["template"].get("spec") or {} for entry in replicated_jobs
    }
