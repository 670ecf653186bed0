"""Typed views of the Kubernetes fields that Muster reads. Pure: no client, no clock, no environment."""
