"""The strategy of each kind: fields that the server sets or restores before a write, and validation.

Sources (v1.37.1): `pkg/registry/{core/pod,batch/job,scheduling/*}/strategy.go`, `pkg/api/{pod,job}/util.go`,
`apiextensions-apiserver/pkg/registry/customresource/{strategy,status_strategy}.go`.
"""

from __future__ import annotations

from muster.simulator.apiserver.kinds import Gates, Kind
from muster.simulator.apiserver.objects import Object, at, by_name, name_of, now, uid_of
from muster.simulator.apiserver.patches.apply import Path
from muster.simulator.apiserver.refusals import FieldError
from muster.simulator.apiserver.validation import custom, groups, job, metadata, pod

JOB_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
LEGACY_LABELS = ("controller-uid", "job-name")
META_RESET_BY_STATUS = (
    *("deletionTimestamp", "deletionGracePeriodSeconds", "generation", "labels", "annotations", "finalizers"),
    "ownerReferences",
)


def prepare_new(kind: Kind, obj: Object, gates: Gates) -> None:
    """Set the fields of a new object that the server owns: status, generation, the selector of a Job."""
    if not kind.custom:
        _drop_disabled_fields(kind, obj, None, gates)
    if kind.version == "v1alpha2" and kind.kind == "PodGroup":
        # A disabled gate drops the field, and the storage sets the default again when it decodes the object.
        obj["spec"].setdefault("disruptionMode", "Pod")
    if kind.has_status and kind.kind not in {"Node", "Service", "CustomResourceDefinition"}:
        obj.pop("status", None)
    if kind.custom or kind.kind in {"Pod", "Job", "PriorityClass"} | WITH_GENERATION:
        obj["metadata"]["generation"] = 1
    prepare = {"Pod": _new_pod, "Job": _new_job, "Namespace": _new_namespace}.get(kind.kind)
    if prepare is not None and not kind.custom:
        prepare(obj)
    elif metadata.is_group_kind(kind) and kind.has_status:
        obj["status"] = {}


_POLICIES = {"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"}
WITH_GENERATION = _POLICIES | {f"{kind}Binding" for kind in _POLICIES} | {"CustomResourceDefinition"}


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
    pod_object["status"]["qosClass"] = qos_class(pod_object["spec"])


def qos_class(spec: Object) -> str:
    """Return a QoS class: BestEffort without resources, Guaranteed if requests equal limits, or Burstable."""
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    asked = []
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = (
            {name: value for name, value in (resources.get(kind) or {}).items() if name in {"cpu", "memory"}}
            for kind in ("requests", "limits")
        )
        asked.append((requests, requests == limits and len(requests) == 2))  # noqa: PLR2004 - cpu and memory
    if not any(requests for requests, _ in asked):
        return "BestEffort"
    return "Guaranteed" if all(whole for _, whole in asked) else "Burstable"


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
    """Restore what the main endpoint cannot write; increment the generation if the spec changed."""
    if not kind.custom:
        _drop_disabled_fields(kind, obj, old, gates)
    if kind.has_status:
        _restore(obj, old, "status")
    if kind.kind == "Namespace" and not kind.custom:
        _restore(obj, old, "spec")
        _restore(obj, old, "status")
    if metadata.is_group_kind(kind):
        return
    if _counts_generation(kind) and _counted(kind, obj) != _counted(kind, old):
        obj["metadata"]["generation"] = metadata.generation_of(old) + 1


def _counts_generation(kind: Kind) -> bool:
    return kind.custom or kind.kind in {"Pod", "Job"} | WITH_GENERATION


def _counted(kind: Kind, obj: Object) -> Object:
    """Return the fields behind the generation: spec; of custom resources all but metadata and status."""
    if not kind.custom:
        return dict(obj.get("spec") or {})
    excluded = {"metadata", "apiVersion", "kind"} | ({"status"} if kind.has_status else set())
    return {key: value for key, value in obj.items() if key not in excluded}


def prepare_status(kind: Kind, obj: Object, old: Object) -> None:
    """Restore the fields that the status endpoint cannot write: all but status, and most of metadata."""
    if kind.custom:
        written = {key: obj["metadata"].get(key) for key in ("managedFields", "resourceVersion")}
        obj["metadata"] = old["metadata"] | written
        for key in (obj.keys() | old.keys()) - {"metadata", "status", "apiVersion", "kind"}:
            _restore(obj, old, key)
        return
    _restore(obj, old, "spec")
    fields: tuple[str, ...] = ("deletionTimestamp", "deletionGracePeriodSeconds", "generation")
    if metadata.is_group_kind(kind):
        fields = META_RESET_BY_STATUS
    elif kind.kind == "Pod":
        fields = (*fields, "ownerReferences")
        _restore(obj.setdefault("status", {}), old.get("status") or {}, "qosClass")
    for field in fields:
        _restore(obj["metadata"], old["metadata"], field)


def _restore(section: Object, old: Object, field: str) -> None:
    if field in old:
        section[field] = old[field]
    else:
        section.pop(field, None)


def reset_fields(kind: Kind, subresource: str) -> frozenset[Path]:
    """Return the fields that an endpoint cannot write, and whose managers it therefore does not change."""
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


def check(kind: Kind, obj: Object, old: Object | None, subresource: str = "") -> list[FieldError]:
    """Return the validation errors of an object, which is new without an old one."""
    errors = metadata.check_new(kind, obj) if old is None else metadata.check_changed(obj, old)
    if kind.custom:
        return errors + custom.check(obj, old, kind.schema)
    if subresource == "status":
        return errors
    if metadata.is_group_kind(kind):
        return errors + groups.check_spec(kind, obj, old)
    match kind.kind:
        case "Pod":
            new_errors = pod.check_spec(obj["spec"], "spec")
            return errors + new_errors + (pod.check_changed(obj, old) if old else [])
        case "Job":
            return errors + (job.check_changed(obj, old) if old else job.check_new(obj))
        case "Event":
            return errors + pod.check_event(obj)
    return errors


def graceful_deletion(kind: Kind, obj: Object, grace: int | None) -> tuple[bool, int]:
    """Whether a deletion removes the object immediately, and its grace period in seconds.

    A pod that is bound and has not ended stays, with a deletionTimestamp, until its kubelet deletes it with a
    grace period of zero (`pkg/registry/core/pod/strategy.go`, CheckGracefulDelete).
    """
    if kind.kind != "Pod" or kind.custom:
        return True, 0
    spec, phase = obj.get("spec") or {}, at(obj, "status", "phase")
    seconds = grace if grace is not None else int(spec.get("terminationGracePeriodSeconds") or 0)
    if not spec.get("nodeName") or phase in {"Succeeded", "Failed"}:
        seconds = 0
    seconds = 1 if seconds < 0 else seconds
    return seconds == 0, seconds


def marks_before_removal(kind: Kind) -> bool:
    """Whether watchers see a deletionTimestamp even before an immediate removal: only Pods."""
    return kind.kind == "Pod" and not kind.custom


def deletion_metadata(obj: Object, seconds: int) -> Object:
    """Return the metadata of an object with a deletionTimestamp."""
    changed: Object = obj["metadata"] | {"deletionTimestamp": now(), "deletionGracePeriodSeconds": seconds}
    if metadata.generation_of(obj):
        changed["generation"] = metadata.generation_of(obj) + 1
    return changed


def _drop_disabled_fields(kind: Kind, obj: Object, old: Object | None, gates: Gates) -> None:
    """Remove the fields of disabled gates, unless the stored object already uses them."""
    spec, old_spec = obj.get("spec") or {}, (old or {}).get("spec") or {}
    is_1_36 = kind.version == "v1alpha2"
    match kind.kind:
        case "Pod":
            _drop(spec, old_spec, schedulingGroup=gates.generic_workload)
        case "Job":
            _drop(spec, old_spec, scheduling=gates.workload_with_job)
            template, old_template = (
                at(spec, "template", "spec") or {},
                at(old_spec, "template", "spec") or {},
            )
            _drop(template, old_template, schedulingGroup=gates.generic_workload)
        case "Workload":
            _drop_in_templates(spec, old_spec, gates, is_1_36=is_1_36)
        case "PodGroup":
            _drop_in_template(spec, old_spec, gates, is_1_36=is_1_36)
            if spec.get("schedulingConstraints") is None:
                spec.pop("schedulingConstraints", None)
            _drop(spec, old_spec, parentCompositePodGroupName=gates.composite_pod_group)
        case "CompositePodGroup":
            _drop(spec, old_spec, preemptionPolicy=gates.pod_group_preemption_policy)


def _drop(spec: Object, old: Object, **enabled: bool) -> None:
    for field, is_enabled in enabled.items():
        if not is_enabled and not old.get(field):
            spec.pop(field, None)


def _drop_in_template(template: Object, old: Object, gates: Gates, *, is_1_36: bool) -> None:
    constrained = old.get("schedulingConstraints") is not None or "schedulingConstraints" not in template
    if not gates.topology_aware_workload_scheduling and not constrained:
        template["schedulingConstraints"] = None
    _drop(template, old, resourceClaims=gates.dra_workload_resource_claims)
    if is_1_36:  # of the gate WorkloadAwarePreemption, which is off here
        _drop(template, old, disruptionMode=False, priorityClassName=False, priority=False)
    else:
        _drop(template, old, preemptionPolicy=gates.pod_group_preemption_policy)


def _drop_in_templates(parent: Object, old: Object, gates: Gates, *, is_1_36: bool = False) -> None:
    old_templates = old.get("podGroupTemplates") or []
    for index, template in enumerate(parent.get("podGroupTemplates") or []):
        old_template = old_templates[index] if index < len(old_templates) else {}
        _drop_in_template(template, old_template, gates, is_1_36=is_1_36)
    _drop(parent, old, compositePodGroupTemplates=gates.composite_pod_group)
    old_by_name = by_name(old.get("compositePodGroupTemplates"))
    for template in parent.get("compositePodGroupTemplates") or []:
        old_template = old_by_name.get(template.get("name"), {})
        _drop(template, old_template, preemptionPolicy=gates.pod_group_preemption_policy)
        _drop_in_templates(template, old_template, gates)
