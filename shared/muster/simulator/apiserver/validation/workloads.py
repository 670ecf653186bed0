"""Validation of Pods, Jobs and Events, as far as Muster, its users and the simulated scheduler depend on it.

Source (v1.37.1): `pkg/apis/{core,batch}/validation` and `pkg/registry/batch/job/strategy.go`. Not validated:
signs of counts, policies of failure and success, `spec.scheduling`, the statuses.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.objects import Object, at, by_name, namespace_of
from muster.simulator.apiserver.refusals import FieldError, forbidden, immutable, invalid, required
from muster.simulator.apiserver.validation.metadata import DNS_LABEL, DNS_SUBDOMAIN, LABEL_KEY, problems

MUTABLE_FIELDS = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
MUTABLE_WHILE_GATED = ("nodeSelector", "affinity")


def check_spec(spec: Object, path: str) -> list[FieldError]:
    """Return the errors of a PodSpec, of a Pod or of a template."""
    errors = [] if spec.get("containers") else [required(f"{path}.containers")]
    for field in ("containers", "initContainers"):
        errors += _containers(spec.get(field) or [], f"{path}.{field}")
    return errors + _scheduling(spec, path)


def _containers(containers: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, container in enumerate(containers):
        missing = [field for field in ("name", "image") if not container.get(field)]
        errors += [required(f"{path}[{index}].{field}") for field in missing]
        if "name" not in missing:
            errors += problems(f"{path}[{index}].name", container["name"], DNS_LABEL)
    return errors


def _scheduling(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    group = spec.get("schedulingGroup")
    if group is not None:
        name = group.get("podGroupName") or ""
        errors += problems(f"{path}.schedulingGroup.podGroupName", name, DNS_SUBDOMAIN)
        if spec.get("evictionResponders"):
            why = "may not be set when evictionResponders is set"
            errors.append(forbidden(f"{path}.schedulingGroup", why))
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        name = gate.get("name", "")
        errors += problems(f"{path}.schedulingGates[{index}]", name, LABEL_KEY)
    return errors


def check_changed_pod(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated Pod; few fields of its spec may change (ValidatePodUpdate)."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    old_gates = by_name(old_spec.get("schedulingGates"))
    errors = [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(spec.get("schedulingGates") or [])
        if gate.get("name") not in old_gates
    ]
    new_frozen, old_frozen = _frozen(spec, gated=bool(old_gates)), _frozen(old_spec, gated=bool(old_gates))
    changed = sorted(
        key for key in new_frozen.keys() | old_frozen.keys() if new_frozen.get(key) != old_frozen.get(key)
    )
    if changed:
        errors.append(forbidden("spec", f"pod updates may not change {', '.join(changed)}"))
    return errors


def _frozen(spec: Object, *, gated: bool) -> Object:
    """Return the fields of a spec that must not change."""
    mutable = (*MUTABLE_FIELDS, *(MUTABLE_WHILE_GATED if gated else ()))
    return {key: _without_images(value) for key, value in spec.items() if key not in mutable}


def _without_images(value: Any) -> Any:
    if isinstance(value, list):
        return [{**item, "image": ""} if isinstance(item, dict) else item for item in value]
    return value


def check_event(event: Object) -> list[FieldError]:
    """Return the errors of an Event of the core group (`pkg/apis/core/validation/events.go`)."""
    involved, namespace = at(event, "involvedObject", "namespace") or "", namespace_of(event)
    if involved == namespace if involved else namespace in {"default", ""}:
        return []
    return [invalid("involvedObject.namespace", involved, "does not match event.namespace")]


_IMMUTABLE = (
    *("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"),
)


def check_new_job(job: Object) -> list[FieldError]:
    """Return the errors of a new Job."""
    spec = job["spec"]
    errors: list[FieldError] = []
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        errors.append(required("spec.completions", "when completion mode is Indexed"))
    pod_spec = spec["template"]["spec"]
    errors += check_spec(pod_spec, "spec.template.spec")
    if pod_spec["restartPolicy"] == "Always":
        errors.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return errors


def check_changed_job(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated Job."""
    spec, old_spec = new["spec"], old["spec"]
    changed = [field for field in _IMMUTABLE if spec.get(field) != old_spec.get(field)]
    errors = check_new_job(new) + _completions(spec, old_spec) + _template(spec, old)
    return errors + [immutable(f"spec.{field}", spec.get(field)) for field in changed]


def _completions(spec: Object, old_spec: Object) -> list[FieldError]:
    new, old = spec.get("completions"), old_spec.get("completions")
    if new == old:
        return []
    if spec.get("completionMode") != "Indexed":
        return [immutable("spec.completions", new)]
    if new is None or new == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", new, "can only be modified in tandem with spec.parallelism")]


def _template(spec: Object, old: Object) -> list[FieldError]:
    """Check that the template is unchanged, but for scheduling directives of a suspended, inactive Job."""
    template, old_template = spec["template"], old["spec"]["template"]
    if not _template_mutable(old):
        return [] if template == old_template else [immutable("spec.template", template)]
    directives = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    new_spec, old_spec = (
        {key: value for key, value in each["spec"].items() if key not in directives}
        for each in (template, old_template)
    )
    return [] if new_spec == old_spec else [immutable("spec.template.spec", template["spec"])]


def _template_mutable(old: Object) -> bool:
    status = old.get("status") or {}
    suspended = any(
        condition.get("type") == "Suspended" and condition.get("status") == "True"
        for condition in status.get("conditions") or []
    )
    started = status.get("startTime") is not None
    return bool(at(old, "spec", "suspend")) and (not started or suspended) and not status.get("active")
