"""Defaulting: set the fields that a request left out.

Sources (v1.37.1): `pkg/apis/core/v1/defaults.go`, `pkg/apis/batch/v1/defaults.go`,
`pkg/apis/scheduling/{v1beta1,v1alpha3}/defaults.go`. The defaults of custom resources come from their schema.
Fields that are null or empty here have no omitempty in Go, which encodes them even if unset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.simulator.apiserver.fields.decoding import with_defaults
from muster.simulator.apiserver.kinds import Gates, Kind
from muster.simulator.apiserver.objects import Object, at, copied

POD_SPEC = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
CONDITION = {"lastProbeTime": None, "lastTransitionTime": None}
_GROUP: Object = {"spec": {"schedulingPolicy": {}, "disruptionMode": {"single": {}}}, "status": {}}
_OLDER: Object = {"spec": {"schedulingPolicy": {}, "disruptionMode": "Pod", "podGroupTemplateRef": None}}

DEFAULTS: Mapping[str, Object] = {
    "Pod": {"spec": {"enableServiceLinks": True}, "status": {}},
    "Job": {
        "spec": {
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": "TerminatingOrFailed",
            "manualSelector": False,
            "template": {"metadata": {}, "spec": {}},
        },
        "status": {},
    },
    "PodGroup": _GROUP,
    "CompositePodGroup": _GROUP,
    "Workload": {"spec": {"podGroupTemplates": None}},
    "Namespace": {"spec": {}, "status": {"phase": "Active"}},
    "Node": {"spec": {}, "status": {}},
    "PriorityClass": {"value": 0, "preemptionPolicy": "PreemptLowerPriority"},
    "Secret": {"type": "Opaque"},
    "Event": {
        **dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp")),
        **dict.fromkeys(("reportingComponent", "reportingInstance"), ""),
        "source": {},
    },
    "CustomResourceDefinition": {"spec": {"names": {}, "conversion": {"strategy": "None"}}},
}


def fill(kind: Kind, obj: Object, gates: Gates) -> None:
    """Set the defaults of an object in place."""
    if kind.custom:
        metadata = obj["metadata"]
        obj.update(with_defaults(obj, kind.schema))
        obj["metadata"] = metadata
        return
    spec = obj.get("spec") or {}
    if kind.kind == "Job" and "parallelism" not in spec and "completions" not in spec:
        _set(obj, {"spec": {"completions": 1}})
    older = kind.version == "v1alpha2" and kind.kind == "PodGroup"
    _set(obj, {**_OLDER, "status": {}} if older else DEFAULTS.get(kind.kind, {}))
    spec = obj.get("spec") or {}
    if kind.kind.endswith("PodGroup") and gates.pod_group_preemption_policy and not older:
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    _derive(kind.kind, obj, spec)


def _derive(kind: str, obj: Object, spec: Object) -> None:
    """Set the defaults that follow from other fields."""
    match kind:
        case "Pod":
            _pod(obj, spec)
        case "Job":
            _job(obj, spec)
        case "Workload":
            _templates(spec)
        case "Namespace" if obj["metadata"].get("name"):
            labels = {"kubernetes.io/metadata.name": obj["metadata"]["name"]}
            obj["metadata"]["labels"] = (obj["metadata"].get("labels") or {}) | labels
        case "Node" if "capacity" in obj["status"]:
            _set(obj["status"], {"allocatable": obj["status"]["capacity"]})
        case "CustomResourceDefinition":
            name = spec["names"].get("kind", "")
            _set(spec["names"], {"singular": name.lower(), "listKind": name + "List"})


def _set(target: Object, defaults: Mapping[str, Any]) -> None:
    """Set the fields that are missing, in the objects in an object too."""
    for field, value in defaults.items():
        if isinstance(value, dict) and value and isinstance(target.get(field, {}), dict):
            if field != "disruptionMode" or field not in target:
                _set(target.setdefault(field, {}), value)
        else:
            target.setdefault(field, copied(value))


def pod_spec(spec: Object) -> None:
    """Set the defaults of a PodSpec, of a Pod or of a template."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    _set(spec, POD_SPEC)
    for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
        tag = container.get("image", "").rpartition("/")[2]
        is_latest = "@" not in tag and (":" not in tag or tag.endswith(":latest"))
        _set(container, {"imagePullPolicy": "Always" if is_latest else "IfNotPresent", **CONTAINER})
        for port in container.get("ports") or []:
            port.setdefault("protocol", "TCP")
        for variable in container.get("env") or []:
            reference = at(variable, "valueFrom", "fieldRef")
            if reference is not None:
                reference.setdefault("apiVersion", "v1")
    for volume in spec.get("volumes") or []:
        if set(volume) == {"name"}:
            volume["emptyDir"] = {}


def _pod(pod: Object, spec: Object) -> None:
    pod_spec(spec)
    for container in (spec.get("initContainers") or []) + (spec.get("containers") or []):
        limits = at(container, "resources", "limits")
        if limits:
            container["resources"]["requests"] = limits | (container["resources"].get("requests") or {})
    _conditions(pod)


def _job(job: Object, spec: Object) -> None:
    template = spec["template"]
    pod_spec(template["spec"])
    labels = template["metadata"].get("labels")
    if labels and not job["metadata"].get("labels"):
        # The same dict, as the same map in Go: labels that creation adds to the template appear here too.
        job["metadata"]["labels"] = labels
    _conditions(job)


def _conditions(obj: Object) -> None:
    for condition in obj["status"].get("conditions") or []:
        _set(condition, CONDITION)


def _templates(parent: Object) -> None:
    for template in parent.get("podGroupTemplates") or []:
        _set(template, {"schedulingPolicy": {}, "schedulingConstraints": None})
    for template in parent.get("compositePodGroupTemplates") or []:
        _set(template, {"schedulingPolicy": {}})
        _templates(template)
