"""Muster beside Knative: manifests, and the same wiring on one machine."""
