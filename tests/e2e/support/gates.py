"""A cluster with the optional feature gates, which Muster does not need."""

from __future__ import annotations

from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import DEFAULT_GATES, Release

WITH_OPTIONAL_GATES = ClusterOptions(
    Release("1.37", gates=(*DEFAULT_GATES["1.37"], "PodGroupPreemptionPolicy", "DRAWorkloadResourceClaims")),
    jobset_gates=("ElasticJobSet", "RestartJob"),
)
"""The Kubernetes gates for `preemptionPolicy` and `resourceClaims` of groups, and JobSet's own gates."""
