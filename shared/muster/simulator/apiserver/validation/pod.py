"""Validation of Pods, as far as Muster, its users and the simulated scheduler depend on it.

Source (v1.37.1): `pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.objects import Object, by_name
from muster.simulator.apiserver.refusals import FieldError
from muster.simulator.apiserver.validation import names

RESTART_POLICIES = ("Always", "OnFailure", "Never")
MUTABLE_FIELDS = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
MUTABLE_WHILE_GATED = ("nodeSelector", "affinity")


def check_spec(spec: Object, path: str) -> list[FieldError]:
    """Return the errors of a PodSpec, of a Pod or of a template."""
    errors = [] if spec.get("containers") else [refusals.required(f"{path}.containers")]
    for field in ("containers", "initContainers"):
        errors += _containers(spec.get(field) or [], f"{path}.{field}")
    policy = spec.get("restartPolicy")
    if policy not in RESTART_POLICIES:
        errors.append(refusals.not_supported(f"{path}.restartPolicy", policy, RESTART_POLICIES))
    return errors + _scheduling(spec, path)


def _containers(containers: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        container_path, name = f"{path}[{index}]", container.get("name", "")
        if not name:
            errors.append(refusals.required(f"{container_path}.name"))
        elif name in seen:
            errors.append(refusals.duplicate(f"{container_path}.name", name))
        else:
            errors += names.problems(f"{container_path}.name", name, names.dns_label)
        seen.add(name)
        if not container.get("image"):
            errors.append(refusals.required(f"{container_path}.image"))
    return errors


def _scheduling(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    group = spec.get("schedulingGroup")
    if group is not None:
        name_path, name = f"{path}.schedulingGroup.podGroupName", group.get("podGroupName")
        if name is None:
            errors.append(refusals.invalid(name_path, None, "must specify one of: `podGroupName`"))
        else:
            errors += names.problems(name_path, name, names.dns_subdomain)
        if spec.get("evictionResponders"):
            why = "may not be set when evictionResponders is set"
            errors.append(refusals.forbidden(f"{path}.schedulingGroup", why))
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        name = gate.get("name", "")
        errors += names.problems(f"{path}.schedulingGates[{index}]", name, names.label_key)
    return errors


def check_new(pod: Object) -> list[FieldError]:
    """Return the errors of a new Pod."""
    return check_spec(pod.get("spec") or {}, "spec")


def check_changed(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated Pod; few fields of its spec may change (ValidatePodUpdate)."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = check_spec(spec, "spec")
    old_gates = by_name(old_spec.get("schedulingGates"))
    errors += [
        refusals.forbidden(
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
        errors.append(refusals.forbidden("spec", f"pod updates may not change {', '.join(changed)}"))
    return errors


def _frozen(spec: Object, *, gated: bool) -> Object:
    """Return the fields of a spec that must not change."""
    mutable = (*MUTABLE_FIELDS, *(MUTABLE_WHILE_GATED if gated else ()))
    return {key: _without_images(value) for key, value in spec.items() if key not in mutable}


def _without_images(value: Any) -> Any:
    if isinstance(value, list):
        return [{**item, "image": ""} if isinstance(item, dict) else item for item in value]
    return value


def check_status(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated status of a Pod."""
    status, old_status = new.get("status") or {}, old.get("status") or {}
    errors = [
        refusals.invalid(f"status.conditions[{index}].type", condition.get("type"), problem)
        for index, condition in enumerate(status.get("conditions") or [])
        for problem in names.label_key(condition.get("type", ""))
    ]
    if status.get("qosClass") != old_status.get("qosClass"):
        errors.append(refusals.immutable("status.qosClass", status.get("qosClass")))
    return errors
