"""Settings of groups that the API server did not keep.

A field whose feature gate is off is dropped without an error (pkg/registry/scheduling, Kubernetes v1.37.1).
"""

from __future__ import annotations

from dataclasses import replace

from muster.objects.scheduling import Workload
from muster.policy.group_labels import belongs_to
from muster.policy.owner_status.conditions import Condition
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.tree.groups import Group

_GATES = {
    "schedulingConstraints": "TopologyAwareWorkloadScheduling",
    "preemptionPolicy": "PodGroupPreemptionPolicy",
    "resourceClaims": "DRAWorkloadResourceClaims",
    "disruptionMode": "WorkloadAwarePreemption, Kubernetes 1.36",
}


def with_dropped_settings(resolved: ResolvedOwner, ready: Condition) -> Condition:
    """Return the condition PodGroupsReady, with the settings of the policy that the API server dropped."""
    workload = resolved.live.workload
    if workload is None or not belongs_to(workload.metadata.labels, resolved.root.uid):
        return ready
    dropped = dropped_settings(resolved.tree, workload)
    if not dropped:
        return ready
    reason = Reason.FIELDS_DROPPED if ready.reason == Reason.POD_GROUPS_EXIST else ready.reason
    return replace(ready, reason=reason, message=f"{ready.message}; dropped by the API server: {dropped}")


def dropped_settings(tree: tuple[Group, ...], workload: Workload) -> str:
    """Settings that the API server dropped from the Workload, as text; "" if it kept all.

    Args:
        tree: the groups of the policy.
        workload: the Workload as it is stored.
    """
    kept = {template.name: template.settings for template, _ in workload.hierarchy()}
    lost: dict[str, list[str]] = {}
    for group in (group for root in tree for group in root.with_all_below()):
        for setting in group.settings.keys() - kept.get(group.name, group.settings).keys():
            lost.setdefault(setting, []).append(group.name)
    return "; ".join(
        f"{setting} of {', '.join(lost[setting])}: feature gate {gate} is off"
        for setting, gate in _GATES.items()
        if setting in lost
    )
