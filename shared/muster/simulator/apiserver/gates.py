"""The feature gates and API versions that the embedded server can switch on and off."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gates:
    """The feature gates of a server, by their names in snake case, and the versions it serves.

    The defaults suit Muster; upstream all of these gates are off by default
    (`pkg/features/kube_features.go`, v1.37.1). As on the real server, a disabled gate drops its fields from
    new objects silently and removes its resources from discovery.

    Attributes:
        generic_workload: Workload and PodGroup, `pod.spec.schedulingGroup`, the PodGroup's finalizer.
        topology_aware_workload_scheduling: `schedulingConstraints`.
        composite_pod_group: CompositePodGroup and the fields that refer to it; 1.37 only.
        workload_with_job: `job.spec.scheduling`.
        pod_group_preemption_policy: `preemptionPolicy` of groups and templates.
        dra_workload_resource_claims: `resourceClaims` of groups and templates.
        served: the versions of scheduling.k8s.io beside v1 that `--runtime-config` enables.
    """

    generic_workload: bool = True
    topology_aware_workload_scheduling: bool = True
    composite_pod_group: bool = True
    workload_with_job: bool = False
    pod_group_preemption_policy: bool = False
    dra_workload_resource_claims: bool = False
    served: frozenset[str] = frozenset({"v1beta1", "v1alpha3", "v1alpha2"})
