"""The objects of a Knative release, from the manifests in its Go modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.cluster import manifests, modules
from tests.cluster.manifests import Object

NODE = "knative"
"""The node of Knative's pods. It has no CPU, so that no pod of a story is placed there."""

NODE_LABEL = "knative"
"""Its label; without a prefix, because a key in config-features cannot contain a slash."""

_EVENTING = (
    "config/core/*.yaml",
    "config/core/roles/*.yaml",
    "config/core/configmaps/*.yaml",
    "config/core/deployments/*.yaml",
    "config/core/webhooks/*.yaml",
    "config/brokers/mt-channel-broker/roles/*.yaml",
    "config/brokers/mt-channel-broker/deployments/*.yaml",
    "config/channels/in-memory-channel/*.yaml",
    "config/channels/in-memory-channel/roles/*.yaml",
    "config/channels/in-memory-channel/configmaps/*.yaml",
    "config/channels/in-memory-channel/deployments/*.yaml",
    "config/channels/in-memory-channel/webhooks/*.yaml",
)
_EVENTING_TYPES = ("config/core/resources/*.yaml", "config/channels/in-memory-channel/resources/*.yaml")
_SERVING = (
    "config/core/100-namespace.yaml",
    "config/core/200-serviceaccount.yaml",
    "config/core/200-roles/*.yaml",
    "config/core/configmaps/*.yaml",
    "config/core/deployments/webhook.yaml",
    "config/core/webhooks/*.yaml",
)
_SERVING_TYPES = ("config/core/300-resources/*.yaml",)

_LEFT_OUT = ("job-sink.yaml", "request-reply.yaml", "hpa.yaml", "webhook-hpa.yaml")
"""Deployments of features that Muster does not use, and what scales the others by CPU."""


def types() -> list[Object]:
    """Return the CustomResourceDefinitions of Eventing, the in-memory channel and Serving."""
    return [
        *_documents(modules.module_folder(modules.EVENTING), _EVENTING_TYPES),
        *_documents(modules.module_folder(modules.SERVING_WEBHOOK), _SERVING_TYPES),
    ]


def objects() -> list[Object]:
    """Return everything else of Eventing, and Serving's webhook; pods are bound to the node ``knative``.

    Of Serving only the webhook: nothing here makes pods of a Knative Service.
    """
    found = [
        *_documents(modules.module_folder(modules.EVENTING), _EVENTING),
        *_documents(modules.module_folder(modules.SERVING_WEBHOOK), _SERVING),
    ]
    return [_placed(obj) for obj in found]


def _documents(folder: Path, patterns: Iterable[str]) -> Iterator[Object]:
    for pattern in patterns:
        files = sorted(file for file in folder.glob(pattern) if file.name not in _LEFT_OUT)
        yield from manifests.documents(files)


def _placed(obj: Object) -> Object:
    if obj["kind"] == "Deployment":
        template = obj["spec"]["template"]["spec"]
        template["nodeSelector"] = {NODE_LABEL: "here"}
        for container in template["containers"]:
            container.pop("resources", None)
    if (obj["kind"], obj["metadata"]["name"]) == ("ConfigMap", "config-features"):
        # The controller makes the Deployments of the adapters itself.
        obj["data"][f"apiserversources-nodeselector-{NODE_LABEL}"] = "here"
    return obj
