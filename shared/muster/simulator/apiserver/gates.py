"""The feature gates and served versions that Muster depends on, as switches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Gates:
    """What the API server is started with; the field names are the gates' own in snake case.

    The defaults are what Muster needs, not what Kubernetes ships: there all of these are off
    (`pkg/features/kube_features.go`, v1.37.1). As on the real server, a gate that is off drops its fields
    from new objects without a word and takes its resources out of discovery.

    Attributes:
        generic_workload: Workload and PodGroup, `pod.spec.schedulingGroup`, the PodGroup's finalizer.
        topology_aware_workload_scheduling: `schedulingConstraints`.
        composite_pod_group: CompositePodGroup and what refers to it; 1.37 only.
        workload_with_job: `job.spec.scheduling`.
        pod_group_preemption_policy: `preemptionPolicy` of groups and templates.
        dra_workload_resource_claims: `resourceClaims` of groups and templates.
        workload_aware_preemption: priority and `disruptionMode` of 1.36's groups; in 1.37 always on.
        served: the versions of scheduling.k8s.io beside v1 that `--runtime-config` switches on.
    """

    generic_workload: bool = True
    topology_aware_workload_scheduling: bool = True
    composite_pod_group: bool = True
    workload_with_job: bool = False
    pod_group_preemption_policy: bool = False
    dra_workload_resource_claims: bool = False
    workload_aware_preemption: bool = False
    served: frozenset[str] = frozenset({"v1beta1", "v1alpha3", "v1alpha2"})
