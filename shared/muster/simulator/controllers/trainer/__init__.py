"""The simulated Kubeflow Trainer (kubeflow/trainer v2.3.0, pkg/controller and pkg/runtime)."""
