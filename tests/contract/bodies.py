"""Minimal valid objects as request bodies, and the API paths of their collections."""

from __future__ import annotations

import time
from typing import Any

from tests.cluster.api import KubernetesApi

Object = dict[str, Any]

GROUPS = "/apis/scheduling.k8s.io"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
FINALIZER = "scheduling.k8s.io/podgroup-protection"


def core(namespace: str, plural: str, name: str = "") -> str:
    """The path of objects of the core group."""
    return f"/api/v1/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")


def jobs(namespace: str, name: str = "") -> str:
    """The path of Jobs."""
    return f"/apis/batch/v1/namespaces/{namespace}/jobs" + (f"/{name}" if name else "")


def groups(namespace: str, plural: str, name: str = "", version: str = "v1beta1") -> str:
    """The path of Workloads, PodGroups and CompositePodGroups."""
    return f"{GROUPS}/{version}/namespaces/{namespace}/{plural}" + (f"/{name}" if name else "")


def widgets(namespace: str, name: str = "") -> str:
    """The path of the custom resources that `widget_definition` defines."""
    return f"/apis/contract.muster.dev/v1/namespaces/{namespace}/widgets" + (f"/{name}" if name else "")


def config_map(name: str = "one", **more: Any) -> Object:
    """A ConfigMap; `labels` and the like go to its metadata, `data` to itself."""
    data = more.pop("data", {"key": "value"})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more}, "data": data}


def pod_spec(**more: Any) -> Object:
    """A PodSpec with one container."""
    return {"containers": [{"name": "main", "image": "registry.example/app:1"}], **more}


def pod(name: str = "pod", metadata: Object | None = None, **spec: Any) -> Object:
    """A Pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": pod_spec(**spec),
    }


def gated(name: str = "pod", *gates: str, **spec: Any) -> Object:
    """A Pod with scheduling gates."""
    return pod(name, schedulingGates=[{"name": gate} for gate in gates or ("example.com/wait",)], **spec)


def job(name: str = "job", template: Object | None = None, **spec: Any) -> Object:
    """A Job; `template` goes to the spec of its pods."""
    pods = {"spec": pod_spec(**{"restartPolicy": "Never", **(template or {})})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": pods, **spec},
    }


def gang(count: int = 2) -> Object:
    """A gang policy."""
    return {"gang": {"minCount": count}}


def template(name: str = "main", **more: Any) -> Object:
    """A PodGroupTemplate."""
    return {"name": name, "schedulingPolicy": gang(), **more}


def composite(name: str = "root", *children: Object, **more: Any) -> Object:
    """A CompositePodGroupTemplate above PodGroupTemplates."""
    return {
        "name": name,
        "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        "podGroupTemplates": list(children),
        **more,
    }


def workload(name: str = "work", *templates: Object, version: str = "v1beta1", **spec: Any) -> Object:
    """A Workload; without `templates` it has one."""
    if not templates and "compositePodGroupTemplates" not in spec and "podGroupTemplates" not in spec:
        templates = (template(),)
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "Workload",
        "metadata": {"name": name},
        "spec": ({"podGroupTemplates": list(templates)} if templates else {}) | spec,
    }


def pod_group(name: str = "group", version: str = "v1beta1", **spec: Any) -> Object:
    """A PodGroup, by default a gang of two."""
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": gang(), **spec},
    }


def composite_group(name: str = "composite", **spec: Any) -> Object:
    """A CompositePodGroup."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": name},
        "spec": {
            "schedulingPolicy": {"gang": {"minGroupCount": 2}},
            "workloadRef": {"workloadName": "work", "templateName": "root"},
            **spec,
        },
    }


def priority_class(name: str, value: int, **more: Any) -> Object:
    """A PriorityClass."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def condition(kind: str = "Ready", status: str = "True", **more: Any) -> Object:
    """A condition with everything that is required."""
    moment = "2026-01-01T00:00:00Z"
    return {
        "type": kind,
        "status": status,
        "reason": "Because",
        "message": "",
        "lastTransitionTime": moment,
        **more,
    }


def widget(name: str = "widget", **spec: Any) -> Object:
    """A custom resource of the kind that `widget_definition` defines."""
    return {
        "apiVersion": "contract.muster.dev/v1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }


def owner(obj: Object, **more: Any) -> Object:
    """A reference to an owner, from its stored object."""
    metadata = obj["metadata"]
    of_kind = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**of_kind, "name": metadata["name"], "uid": metadata["uid"], **more}


_PARTS = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
    },
}
_SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer"},
        "mode": {"type": "string", "enum": ["Fast", "Slow"], "default": "Fast"},
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "Value is immutable"}],
        },
        "parts": _PARTS,
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
_STATUS = {"type": "object", "properties": {"size": {"type": "integer"}}}


def widget_definition() -> Object:
    """A CustomResourceDefinition with status, a default, a keyed list, an immutable field."""
    schema = {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.contract.muster.dev"},
        "spec": {
            "group": "contract.muster.dev",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }


def serve_widgets(api: KubernetesApi, namespace: str) -> None:
    """Have the server serve Widgets in a namespace; a definition takes the real server a moment."""
    definition = widget_definition()
    api.request("POST", DEFINITIONS, definition)
    for _ in range(100):
        if api.request("GET", widgets(namespace)).ok:
            return
        time.sleep(0.05)
    raise AssertionError("Widgets are not served")
