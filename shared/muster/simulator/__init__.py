"""Simulators of Kubernetes and Knative on one machine: API server, controllers, broker, event source."""
