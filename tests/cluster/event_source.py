"""Starts Knative's receive adapter for ApiServerSource objects, as Knative's controller would.

Source: ``makeEnv`` in knative.dev/eventing v0.47.0,
pkg/reconciler/apiserversource/resources/receive_adapter.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.cluster import modules
from tests.cluster.api import Api
from tests.cluster.processes import Process, free_ports, start, wait_ready


def start_adapter(api: Api, source: Mapping[str, Any], kubeconfig: Path, sink: str, folder: Path) -> Process:
    """Starts the adapter of one source that watches every namespace, and waits until its watches stand.

    Its probes listen on port 8080 of every adapter; where that port is taken it goes on without them, so
    readiness is asked of the API server instead.

    Args:
        api: the API server, as somebody who may read its metrics.
        source: an ApiServerSource.
        kubeconfig: of the source's service account.
        sink: URL that gets the events; it must be listening already.
        folder: where the log goes.
    """
    metadata, spec = source["metadata"], source["spec"]
    resources = [_watched(resource) for resource in spec["resources"]]
    configuration = {
        "namespaces": [""],
        "allNamespaces": True,
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
    before = _open_watches(api)
    command = [str(modules.build(modules.ADAPTER)), f"--kubeconfig={kubeconfig}"]
    process = start(f"adapter-{metadata['name']}", command, folder, environment)
    wanted = [resource["gvr"]["Resource"] for resource in resources]
    wait_ready(process, lambda: all(_open_watches(api).get(one, 0) > before.get(one, 0) for one in wanted))
    return process


def _watched(resource: Mapping[str, Any]) -> dict[str, Any]:
    group, _, version = resource["apiVersion"].rpartition("/")
    gvr = {"Group": group, "Version": version, "Resource": resource["kind"].lower() + "s"}
    return {"gvr": gvr, "selector": _selector(resource.get("selector", {}))}


def _selector(selector: Mapping[str, Any]) -> str:
    terms = [f"{key}={value}" for key, value in selector.get("matchLabels", {}).items()]
    for expression in selector.get("matchExpressions", []):
        if expression["operator"] != "Exists":
            raise ValueError(
                f"operator {expression['operator']} of a source's selector is not translated here"
            )
        terms.append(expression["key"])
    return ",".join(terms)


def _open_watches(api: Api) -> dict[str, int]:
    """Returns how many watches are open, by plural name of the resource."""
    metrics = api.request("GET", "/metrics").body
    counts: dict[str, int] = {}
    for line in str(metrics).splitlines():
        if line.startswith("apiserver_longrunning_requests{") and 'verb="WATCH"' in line:
            plural = line.split('resource="', 1)[1].split('"', 1)[0]
            counts[plural] = counts.get(plural, 0) + int(float(line.rsplit(" ", 1)[1]))
    return counts
