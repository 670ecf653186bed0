"""The event wiring of eventing/ on one machine, without Knative."""
