"""Warn of gangs that a namespace's ResourceQuota keeps from ever having all their pods.

Quota is charged when a pod is created, for gated pods too, and only the Events of the Job controller report
it (plugin/pkg/admission/resourcequota, Kubernetes v1.37.1).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.cluster.interface import Cluster
from muster.cluster.read import list_if_served
from muster.objects.meta import ObjectRef
from muster.objects.quantities import milli
from muster.objects.resources import JOBS, JOBSETS, RESOURCE_QUOTAS
from muster.policy.group_labels import GroupInstance
from muster.policy.owners.kind import OwnerPodSets
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.groups import Group

_PODS = "pods"


def quota_warnings(cluster: Cluster, owner: ResolvedOwner) -> Iterator[str]:
    """Yield a line per gang and resource of which minCount pods request more than any quota allows."""
    smallest = _smallest(list_if_served(cluster, RESOURCE_QUOTAS, owner.pod_sets.named_by.namespace))
    if not smallest:
        return
    pod_specs = _pod_specs(cluster, owner.pod_sets)
    for root in owner.tree:
        for leaf in filter(lambda leaf: leaf.gang, root.leaves()):
            requests = _gang_requests(leaf, pod_specs)
            yield from _exceeded(leaf, requests, smallest)


@dataclass(frozen=True)
class _Allowed:
    """What a quota allows of a resource, as text and in thousandths."""

    quota: str
    limit: str
    thousandths: int


def _smallest(quotas: Iterable[Mapping[str, Any]]) -> dict[str, _Allowed]:
    """Return by resource, in order, what the quota allows that allows least of it.

    A namespace may have thousands of quotas and of owners: a warning of each for each would be millions.
    """
    smallest: dict[str, _Allowed] = {}
    for quota in quotas:
        for resource, limit in ((quota.get("spec") or {}).get("hard") or {}).items():
            allowed = _Allowed(quota["metadata"]["name"], str(limit), milli(str(limit)))
            known = smallest.get(resource)
            if known is None or allowed.thousandths < known.thousandths:
                smallest[resource] = allowed
    return dict(sorted(smallest.items()))


def _exceeded(leaf: Group, requests: Mapping[str, int], smallest: Mapping[str, _Allowed]) -> Iterator[str]:
    for resource, allowed in smallest.items():
        # In a quota, `cpu` means the same as `requests.cpu`.
        requested = requests.get(resource.removeprefix("requests."), 0)
        if requested > allowed.thousandths:
            yield (
                f"group {leaf.name}: {leaf.template_min_count} pods need {resource} {_quantity(requested)}, "
                f"ResourceQuota {allowed.quota} allows {allowed.limit}: they can never all exist"
            )


def _quantity(thousandths: int) -> str:
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def _gang_requests(leaf: Group, pod_specs: Mapping[str, Mapping[str, Any]]) -> Counter[str]:
    """Return the requests of minCount pods of a group by resource, in thousandths.

    The pods are taken from the group's pod sets in order, at most as many as the largest instance of the
    group has of each.
    """
    total: Counter[str] = Counter()
    largest = max(leaf.sizes, key=lambda suffix: leaf.sizes[suffix], default="")
    remaining = leaf.template_min_count
    for pod_set in leaf.pod_sets:
        pods = min(remaining, pod_set.expected_members.get(GroupInstance(leaf.name, largest), 0))
        remaining -= pods
        total[_PODS] += pods * 1000
        for name, quantity in _pod_requests(pod_specs.get(pod_set.replicated_job, {})).items():
            total[name] += pods * quantity
    return total


def _pod_requests(pod_spec: Mapping[str, Any]) -> Counter[str]:
    total: Counter[str] = Counter()
    for container in pod_spec.get("containers") or []:
        resources = container.get("resources") or {}
        # A limit without a request is defaulted to be the request (pkg/apis/core/v1/defaults.go).
        for name, quantity in {
            **(resources.get("limits") or {}),
            **(resources.get("requests") or {}),
        }.items():
            total[name] += milli(str(quantity))
    return total


def _pod_specs(cluster: Cluster, pod_sets: OwnerPodSets) -> dict[str, Mapping[str, Any]]:
    """Return the pod specs of an owner by replicatedJob; "" for a plain Job."""
    ref: ObjectRef = pod_sets.named_by
    if ref.kind == JOBS.kind:
        job = cluster.get(JOBS, ref.name, ref.namespace) or {}
        return {"": job.get("spec", {}).get("template", {}).get("spec", {})}
    jobset = cluster.get(JOBSETS, ref.name, ref.namespace) or {}
    replicated_jobs = jobset.get("spec", {}).get("replicatedJobs") or []
    return {
        entry["name"]: entry["template"]["spec"]["template"].get("spec") or {} for entry in replicated_jobs
    }
