"""Validation of Pods and Events, as far as Muster, its users and the simulated scheduler depend on it.

Source (v1.37.1): `pkg/apis/core/validation/validation.go`.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver import refusals
from muster.simulator.apiserver.objects import Object, at, by_name, namespace_of
from muster.simulator.apiserver.refusals import FieldError
from muster.simulator.apiserver.validation import names

MUTABLE_FIELDS = ("activeDeadlineSeconds", "schedulingGates", "tolerations")
MUTABLE_WHILE_GATED = ("nodeSelector", "affinity")


def check_spec(spec: Object, path: str) -> list[FieldError]:
    """Return the errors of a PodSpec, of a Pod or of a template."""
    errors = [] if spec.get("containers") else [refusals.required(f"{path}.containers")]
    for field in ("containers", "initContainers"):
        errors += _containers(spec.get(field) or [], f"{path}.{field}")
    return errors + _scheduling(spec, path)


def _containers(containers: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, container in enumerate(containers):
        missing = [field for field in ("name", "image") if not container.get(field)]
        errors += [refusals.required(f"{path}[{index}].{field}") for field in missing]
        if "name" not in missing:
            errors += names.problems(f"{path}[{index}].name", container["name"], names.DNS_LABEL)
    return errors


def _scheduling(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    group = spec.get("schedulingGroup")
    if group is not None:
        name = group.get("podGroupName") or ""
        errors += names.problems(f"{path}.schedulingGroup.podGroupName", name, names.DNS_SUBDOMAIN)
        if spec.get("evictionResponders"):
            why = "may not be set when evictionResponders is set"
            errors.append(refusals.forbidden(f"{path}.schedulingGroup", why))
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        name = gate.get("name", "")
        errors += names.problems(f"{path}.schedulingGates[{index}]", name, names.LABEL_KEY)
    return errors


def check_changed(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated Pod; few fields of its spec may change (ValidatePodUpdate)."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    old_gates = by_name(old_spec.get("schedulingGates"))
    errors = [
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


def check_event(event: Object) -> list[FieldError]:
    """Return the errors of an Event of the core group (`pkg/apis/core/validation/events.go`)."""
    involved, namespace = at(event, "involvedObject", "namespace") or "", namespace_of(event)
    if involved == namespace if involved else namespace in {"default", ""}:
        return []
    return [refusals.invalid("involvedObject.namespace", involved, "does not match event.namespace")]
