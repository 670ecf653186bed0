"""Stand-ins for a cluster and for Knative on one machine: API server, controllers, broker, event source."""
