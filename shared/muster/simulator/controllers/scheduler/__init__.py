"""The simulated kube-scheduler (kubernetes v1.37.1, pkg/scheduler)."""
