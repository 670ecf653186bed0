"""A cluster with the feature gates that Muster can do without."""

from __future__ import annotations

from tests.cluster.cluster import Options
from tests.cluster.control_plane import DEFAULT_GATES, Release

WITH_OPTIONAL_GATES = Options(
    Release("1.37", gates=(*DEFAULT_GATES["1.37"], "PodGroupPreemptionPolicy", "DRAWorkloadResourceClaims")),
    jobset_gates=("ElasticJobSet", "RestartJob"),
)
"""Of Kubernetes those that keep `preemptionPolicy` and `resourceClaims` of groups, of JobSet its own."""
