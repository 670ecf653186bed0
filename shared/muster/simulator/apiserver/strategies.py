"""What each kind does to a body before it is stored, and which rules judge it.

Sources (v1.37.1): `pkg/registry/{core/pod,batch/job,scheduling/*}/strategy.go`,
`apiextensions-apiserver/pkg/registry/customresource/{strategy,status_strategy}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from muster.simulator.apiserver.dropped import drop_disabled
from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, name_of, now, uid_of
from muster.simulator.apiserver.patches.fieldsets import Fields
from muster.simulator.apiserver.status import FieldError
from muster.simulator.apiserver.validation import (
    custom,
    definitions,
    groups,
    groups_1_36,
    job,
    metadata,
    others,
    pod,
)

JOB_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
LEGACY_LABELS = ("controller-uid", "job-name")
META_RESET_BY_STATUS = (
    *("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "labels", "annotations", "finalizers"),
    "ownerReferences",
)


def prepare_new(kind: Kind, obj: Object, gates: Gates) -> None:
    """Set what the server decides in a new object: status, generation, labels of a Job's pods."""
    drop_disabled(kind, obj, None, gates)
    if kind.version == "v1alpha2" and kind.kind == "PodGroup":
        obj["spec"].setdefault(
            "disruptionMode", "Pod"
        )  # dropped with its gate, defaulted again by the storage
    if kind.has_status and kind.kind not in {"Node", "Service", "CustomResourceDefinition"}:
        obj.pop("status", None)
    if kind.custom or kind.kind in {"Pod", "Job", "PriorityClass"} | WITH_GENERATION:
        obj["metadata"]["generation"] = 1
    function = {"Pod": _new_pod, "Job": _new_job, "Namespace": _new_namespace}.get(kind.kind)
    if function is not None and not kind.custom:
        function(obj)
    elif metadata.is_group_kind(kind) and kind.has_status:
        obj["status"] = {}


WITH_GENERATION = frozenset(
    {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "CustomResourceDefinition"}
)


def _new_pod(pod_object: Object) -> None:
    pod_object["status"] = {"phase": "Pending"}
    if pod_object["spec"].get("schedulingGates"):
        pod_object["status"]["conditions"] = [
            {
                "lastProbeTime": None,
                "lastTransitionTime": now(),
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "reason": "SchedulingGated",
                "status": "False",
                "type": "PodScheduled",
            }
        ]
    pod_object["status"]["qosClass"] = quality_of_service(pod_object["spec"])


def quality_of_service(spec: Object) -> str:
    """BestEffort without resources, Guaranteed where limits are the requests, else Burstable."""
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    limits: list[Mapping[str, Any]] = []
    for container in containers:
        resources = container.get("resources") or {}
        limits.append({k: v for k, v in (resources.get("limits") or {}).items() if k in {"cpu", "memory"}})
        requests = {k: v for k, v in (resources.get("requests") or {}).items() if k in {"cpu", "memory"}}
        if requests != limits[-1] or (requests and len(requests) != 2):  # noqa: PLR2004 - cpu and memory
            return "Burstable"
    if not any(limits):
        return "BestEffort"
    return "Guaranteed" if all(limits) else "Burstable"


def _new_job(job_object: Object) -> None:
    job_object["status"] = {}
    spec = job_object["spec"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for uid_label, name_label in (JOB_LABELS, LEGACY_LABELS):
        labels.setdefault(name_label, name_of(job_object))
        labels.setdefault(uid_label, uid_of(job_object))
    selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
    selector.setdefault(JOB_LABELS[0], uid_of(job_object))
    if not job_object["metadata"].get("labels"):
        job_object["metadata"]["labels"] = dict(labels)


def _new_namespace(namespace: Object) -> None:
    namespace["spec"] = {"finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def prepare_changed(kind: Kind, obj: Object, old: Object, gates: Gates) -> None:
    """Undo what this endpoint may not write, and count the generation up where the kind has one."""
    drop_disabled(kind, obj, old, gates)
    if kind.has_status:
        _keep(obj, old, "status")
    if kind.kind == "Namespace" and not kind.custom:
        _keep(obj, old, "spec")
        _keep(obj, old, "status")
    if metadata.is_group_kind(kind):
        return
    if _counts_generation(kind) and _countable(kind, obj) != _countable(kind, old):
        obj["metadata"]["generation"] = metadata.generation_of(old) + 1


def _counts_generation(kind: Kind) -> bool:
    return kind.custom or kind.kind in {"Pod", "Job"} | WITH_GENERATION


def _countable(kind: Kind, obj: Object) -> Object:
    """What changes the generation: the spec; of custom resources everything but metadata and status."""
    if not kind.custom:
        return dict(obj.get("spec") or {})
    left_out = {"metadata", "apiVersion", "kind"} | ({"status"} if kind.has_status else set())
    return {key: value for key, value in obj.items() if key not in left_out}


def prepare_status(kind: Kind, obj: Object, old: Object) -> None:
    """Undo what the status endpoint may not write: everything but status, and most of metadata."""
    if kind.custom:
        kept = {
            key: value
            for key, value in obj["metadata"].items()
            if key in {"managedFields", "resourceVersion"}
        }
        rest = {key: value for key, value in old["metadata"].items() if key not in kept}
        obj["metadata"] = rest | kept
        for key in (obj.keys() | old.keys()) - {"metadata", "status", "apiVersion", "kind"}:
            _keep(obj, old, key)
        return
    _keep(obj, old, "spec")
    fields: tuple[str, ...] = ("deletionTimestamp", "deletionGracePeriodSeconds", "generation")
    if metadata.is_group_kind(kind):
        fields = META_RESET_BY_STATUS
    elif kind.kind == "Pod":
        fields = (*fields, "ownerReferences")
        _keep_in(obj.setdefault("status", {}), old.get("status") or {}, "qosClass")
    for field in fields:
        _keep_in(obj["metadata"], old["metadata"], field)


def _keep(obj: Object, old: Object, field: str) -> None:
    if field in old:
        obj[field] = old[field]
    else:
        obj.pop(field, None)


def _keep_in(section: Object, old: Object, field: str) -> None:
    if field in old:
        section[field] = old[field]
    else:
        section.pop(field, None)


def reset_fields(kind: Kind, subresource: str) -> Fields:
    """The fields that an endpoint does not write, so that nobody comes to own them through it."""
    if subresource == "status":
        if metadata.is_group_kind(kind):
            return frozenset({("f:metadata",), ("f:spec",)})
        if kind.custom:
            fields = (
                key for key in (kind.schema.get("properties") or {}) if key not in {"status", "metadata"}
            )
            return frozenset({("f:metadata",), *((f"f:{field}",) for field in fields)})
        return frozenset(
            {("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")}
        )
    return frozenset({("f:status",)}) if kind.has_status else frozenset()


Checks = tuple[
    Callable[[Object], list[FieldError]],
    Callable[[Object, Object], list[FieldError]],
    Callable[[Object, Object], list[FieldError]],
]


def _nothing(_new: Object, _old: Object) -> list[FieldError]:
    return []


def _group_status(new: Object, _old: Object) -> list[FieldError]:
    return groups.group_status(new)


def _both(function: Callable[[Object, Object | None], list[FieldError]]) -> Checks:
    return lambda new: function(new, None), function, _group_status


CHECKS: Mapping[str, Checks] = {
    "Pod": (pod.check_new, pod.check_changed, pod.check_status),
    "Job": (job.check_new, job.check_changed, job.check_status),
    "Workload": _both(groups.workload),
    "PodGroup": _both(groups.pod_group),
    "CompositePodGroup": _both(groups.composite_pod_group),
    "PriorityClass": (others.new_priority_class, others.changed_priority_class, _nothing),
    "ConfigMap": (others.new_config_map, others.changed_config_map, _nothing),
    "Secret": (others.new_secret, others.changed_secret, _nothing),
    "Event": (others.new_event, lambda new, _old: others.new_event(new), _nothing),
    "MutatingAdmissionPolicy": (others.new_policy, lambda new, _old: others.new_policy(new), _nothing),
    "MutatingAdmissionPolicyBinding": (
        others.new_binding,
        lambda new, _old: others.new_binding(new),
        _nothing,
    ),
    "CustomResourceDefinition": (definitions.check_new, definitions.check_changed, _nothing),
}
CHECKS_1_36: Mapping[str, Checks] = {
    "Workload": _both(groups_1_36.workload),
    "PodGroup": _both(groups_1_36.pod_group),
}


def _checks(kind: Kind) -> Checks | None:
    if kind.version == "v1alpha2":
        return CHECKS_1_36.get(kind.kind)
    return CHECKS.get(kind.kind)


def check_new(kind: Kind, obj: Object) -> list[FieldError]:
    """Every rule that a new object breaks."""
    errors = metadata.check_new(kind, obj)
    if kind.custom:
        return errors + custom.check(obj, None, kind.schema)
    checks = _checks(kind)
    return errors + (checks[0](obj) if checks else [])


def check_changed(kind: Kind, obj: Object, old: Object, subresource: str = "") -> list[FieldError]:
    """Every rule that a changed object breaks."""
    errors = metadata.check_changed(obj, old)
    if kind.custom:
        return errors + custom.check(obj, old, kind.schema)
    checks = _checks(kind)
    if checks is None:
        return errors
    judge = checks[2] if subresource == "status" else checks[1]
    return errors + judge(obj, old)


def deleted_at_once(kind: Kind, obj: Object, grace: int | None) -> tuple[bool, int]:
    """Whether a deletion takes the object away at once, and after how many seconds the kubelet should.

    A pod on a node that has not ended stays, with a deletionTimestamp, until its kubelet deletes it for good
    with a grace period of zero (`pkg/registry/core/pod/strategy.go`, CheckGracefulDelete).
    """
    if kind.kind != "Pod" or kind.custom:
        return True, 0
    spec, phase = obj.get("spec") or {}, at(obj, "status", "phase")
    seconds = grace if grace is not None else int(spec.get("terminationGracePeriodSeconds") or 0)
    if not spec.get("nodeName") or phase in {"Succeeded", "Failed"}:
        seconds = 0
    seconds = 1 if seconds < 0 else seconds
    return seconds == 0, seconds


def announces_deletion(kind: Kind) -> bool:
    """Whether a deletionTimestamp is set even on what goes at once: a pod's watchers see both."""
    return kind.kind == "Pod" and not kind.custom


def deletion_mark(obj: Object, seconds: int) -> Object:
    """The metadata of an object that is on its way out."""
    changed: Object = obj["metadata"] | {"deletionTimestamp": now(), "deletionGracePeriodSeconds": seconds}
    if metadata.generation_of(obj):
        changed["generation"] = metadata.generation_of(obj) + 1
    return changed
