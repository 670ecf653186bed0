"""Starts Knative's receive adapter for ApiServerSource objects, as Knative's controller would.

Source: ``makeEnv`` in knative.dev/eventing v0.47.0,
pkg/reconciler/apiserversource/resources/receive_adapter.go; its namespaces by ``namespacesFromSelector`` in
pkg/reconciler/apiserversource/apiserversource.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.simulator.source import selector_text
from tests.cluster import audit, modules
from tests.cluster.processes import ComponentProcess, free_ports, start, wait_ready


def start_adapter(
    source: Mapping[str, Any], kubeconfig: Path, sink: str, folder: Path, audit_log: Path
) -> ComponentProcess:
    """Start the adapter of one source, and wait until its watches are established.

    Several adapters cannot share port 8080 of their probes, so the API server's audit log shows readiness.
    """
    metadata, spec = source["metadata"], source["spec"]
    resources = [_watched(resource) for resource in spec["resources"]]
    everywhere = spec.get("namespaceSelector") == {}
    if not everywhere and "namespaceSelector" in spec:
        raise ValueError("a source's selector of some namespaces is not translated here")
    configuration = {
        "namespaces": [""] if everywhere else [metadata["namespace"]],
        "allNamespaces": everywhere,
        "resources": resources,
        "mode": spec["mode"],
    }
    environment = {
        "K_SINK": sink,
        "K_SOURCE_CONFIG": json.dumps(configuration),
        "NAME": metadata["name"],
        "NAMESPACE": metadata["namespace"],
        "SYSTEM_NAMESPACE": "knative-eventing",
        "METRICS_DOMAIN": "knative.dev/eventing",
        "PROFILING_PORT": str(free_ports(1)[0]),
        "KUBECONFIG": str(kubeconfig),
    }
    before = audit.size(audit_log)
    command = [str(modules.build(modules.ADAPTER)), f"--kubeconfig={kubeconfig}"]
    process = start(f"adapter-{metadata['name']}", command, folder, environment)
    wait_ready(process, lambda: plurals(source) <= _watches_since(audit_log, before))
    return process


def plurals(source: Mapping[str, Any]) -> set[str]:
    """Return the plural names of the resources that a source watches."""
    return {_watched(resource)["gvr"]["Resource"] for resource in source["spec"]["resources"]}


def _watched(resource: Mapping[str, Any]) -> dict[str, Any]:
    group, _, version = resource["apiVersion"].rpartition("/")
    gvr = {"Group": group, "Version": version, "Resource": resource["kind"].lower() + "s"}
    return {"gvr": gvr, "selector": selector_text(resource.get("selector", {}))}


def _watches_since(audit_log: Path, offset: int) -> set[str]:
    """Return the plural names of the resources whose watches the audit log shows after an offset."""
    events = audit.events_since(audit_log, offset)
    return {event["objectRef"]["resource"] for event in events if event["verb"] == "watch"}
