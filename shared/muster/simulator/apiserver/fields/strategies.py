"""The strategy of each kind: fields that the server sets or restores before a write, and validation.

Sources (v1.37.1): `pkg/registry/{core/pod,batch/job,scheduling/*}/strategy.go`, `pkg/api/{pod,job}/util.go`,
`apiextensions-apiserver/pkg/registry/customresource/{strategy,status_strategy}.go`. Not there: metadata of
built-in kinds that their status endpoint may write.
"""

from __future__ import annotations

from muster.simulator.apiserver.kinds import Gates, Kind
from muster.simulator.apiserver.objects import Object, at, name_of, now, uid_of
from muster.simulator.apiserver.patches import Path
from muster.simulator.apiserver.refusals import FieldError
from muster.simulator.apiserver.validation import custom, groups, metadata, workloads

JOB_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
LEGACY_LABELS = ("controller-uid", "job-name")
_POLICIES = {"MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"}
WITH_GENERATION = (
    {"Pod", "Job", "PriorityClass", "CustomResourceDefinition"}
    | _POLICIES
    | {f"{kind}Binding" for kind in _POLICIES}
)


def prepare_new(kind: Kind, obj: Object, gates: Gates) -> None:
    """Set the fields of a new object that the server owns: status, generation, the selector of a Job."""
    if kind.custom or kind.kind in WITH_GENERATION:
        obj["metadata"]["generation"] = 1
    if kind.has_status and kind.kind not in {"Node", "Service", "CustomResourceDefinition"}:
        obj.pop("status", None)
    if kind.custom:
        return
    spec = obj.get("spec") or {}
    match kind.kind:
        case "Pod":
            _drop(spec, {"schedulingGroup": gates.generic_workload})
            obj["status"] = _new_pod_status(spec)
        case "Job":
            _drop(spec, {"scheduling": gates.workload_with_job})
            _drop(spec["template"]["spec"], {"schedulingGroup": gates.generic_workload})
            obj["status"] = {}
            _set_selector(obj, spec)
        case "Namespace":
            obj |= {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
        case "Workload" | "PodGroup" | "CompositePodGroup":
            _drop_in_templates(spec, kind, gates)
            if kind.has_status:
                obj["status"] = {}
            if kind.version == "v1alpha2" and kind.kind == "PodGroup":
                # The storage sets the default of the dropped field again when it decodes the object.
                spec["disruptionMode"] = "Pod"


def _drop(spec: Object, enabled: dict[str, bool]) -> None:
    """Remove the fields of disabled gates."""
    for field, is_enabled in enabled.items():
        if not is_enabled:
            spec.pop(field, None)


def _drop_in_templates(spec: Object, kind: Kind, gates: Gates) -> None:
    """Remove the fields of disabled gates from a group or Workload, and from the templates in it."""
    enabled = {
        "parentCompositePodGroupName": gates.composite_pod_group,
        "compositePodGroupTemplates": gates.composite_pod_group,
        "preemptionPolicy": gates.pod_group_preemption_policy,
        "resourceClaims": gates.dra_workload_resource_claims,
        "schedulingConstraints": gates.topology_aware_workload_scheduling,
    }
    if kind.version == "v1alpha2":  # of the gate WorkloadAwarePreemption, which is off here
        enabled |= dict.fromkeys(("disruptionMode", "priorityClassName", "priority"), False)
    _drop(spec, enabled)
    for template in spec.get("podGroupTemplates") or []:
        _drop(template, enabled)
        template.setdefault("schedulingConstraints", None)
    for template in spec.get("compositePodGroupTemplates") or []:
        _drop_in_templates(template, kind, gates)


def _new_pod_status(spec: Object) -> Object:
    status: Object = {"phase": "Pending", "qosClass": _qos_class(spec)}
    if spec.get("schedulingGates"):
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        message = "Scheduling is blocked due to non-empty scheduling gates"
        times = {"lastProbeTime": None, "lastTransitionTime": now()}
        status["conditions"] = [{**gated, "message": message, **times}]
    return status


def _qos_class(spec: Object) -> str:
    """Return a QoS class: BestEffort without resources, Guaranteed if requests equal limits, or Burstable."""
    counted = {"cpu", "memory"}
    containers = (spec.get("containers") or []) + (spec.get("initContainers") or [])
    resources = [container.get("resources") or {} for container in containers]
    if not any(counted & one.get("requests", {}).keys() for one in resources):
        return "BestEffort"
    whole = all(
        counted <= one.get("requests", {}).keys() and one["requests"] == one.get("limits")
        for one in resources
    )
    return "Guaranteed" if whole else "Burstable"


def _set_selector(job_object: Object, spec: Object) -> None:
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


def prepare_changed(kind: Kind, obj: Object, old: Object) -> None:
    """Restore what the main endpoint cannot write; increment the generation if the spec changed."""
    if kind.has_status:
        _restore(obj, old, "status")
    if kind.kind == "Namespace" and not kind.custom:
        _restore(obj, old, "spec")
    if (kind.custom or kind.kind in WITH_GENERATION) and _counted(kind, obj) != _counted(kind, old):
        obj["metadata"]["generation"] = metadata.generation_of(old) + 1


def _counted(kind: Kind, obj: Object) -> Object:
    """Return the fields behind the generation: spec; of custom resources all but metadata and status."""
    if not kind.custom:
        return dict(obj.get("spec") or {})
    excluded = {"metadata", "apiVersion", "kind"} | ({"status"} if kind.has_status else set())
    return {key: value for key, value in obj.items() if key not in excluded}


def prepare_status(kind: Kind, obj: Object, old: Object) -> None:
    """Restore the fields that the status endpoint cannot write: all but status."""
    given = (
        ("managedFields", "resourceVersion") if kind.custom else ("managedFields", "resourceVersion", "uid")
    )
    obj["metadata"] = old["metadata"] | {key: obj["metadata"].get(key) for key in given}
    for key in (obj.keys() | old.keys()) - {"metadata", "status", "apiVersion", "kind"}:
        _restore(obj, old, key)
    if kind.kind == "Pod" and not kind.custom:
        _restore(obj.setdefault("status", {}), old["status"], "qosClass")


def _restore(section: Object, old: Object, field: str) -> None:
    if field in old:
        section[field] = old[field]
    else:
        section.pop(field, None)


def reset_fields(kind: Kind, subresource: str) -> frozenset[Path]:
    """Return the fields that an endpoint cannot write, and whose managers it therefore does not change."""
    if subresource == "status":
        fields = (kind.schema.get("properties") or {}).keys() - {"status"}
        return frozenset((f"f:{field}",) for field in fields)
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
            errors += workloads.check_spec(obj["spec"], "spec")
            return errors + (workloads.check_changed_pod(obj, old) if old else [])
        case "Job":
            check_job = workloads.check_changed_job(obj, old) if old else workloads.check_new_job(obj)
            return errors + check_job
        case "Event":
            return errors + workloads.check_event(obj)
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
