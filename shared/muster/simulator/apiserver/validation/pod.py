"""Validation of Pods, as far as Muster, its users and the simulated scheduler depend on it.

Source (v1.37.1): `pkg/apis/core/validation/validation.go`. Volumes, probes, ports, security contexts and
resources are not validated: no step reads them.
"""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver.objects import Object, at, by_name
from muster.simulator.apiserver.status import (
    FieldError,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from muster.simulator.apiserver.validation import names

RESTART_POLICIES = ("Always", "OnFailure", "Never")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
MAX_INT32 = 2**31 - 1

MUTABLE_FIELDS = (
    "`spec.containers[*].image`,"
    "`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_spec(spec: Object, path: str) -> list[FieldError]:
    """Return the errors of a PodSpec, of a Pod or of a template."""
    errors = _containers(spec.get("containers") or [], f"{path}.containers", non_empty=True)
    errors += _containers(spec.get("initContainers") or [], f"{path}.initContainers", non_empty=False)
    container_names = {container.get("name") for container in spec.get("containers") or []}
    for index, container in enumerate(spec.get("initContainers") or []):
        if container.get("name") in container_names:
            errors.append(duplicate(f"{path}.initContainers[{index}].name", container.get("name")))
    policy = spec.get("restartPolicy")
    if not policy:
        errors.append(required(f"{path}.restartPolicy"))
    elif policy not in RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, RESTART_POLICIES))
    if spec.get("nodeName"):
        errors += [
            invalid(f"{path}.nodeName", spec["nodeName"], problem)
            for problem in names.dns_subdomain(spec["nodeName"])
        ]
    return errors + _node_selector(spec, path) + _scheduling(spec, path)


def _containers(containers: list[Object], path: str, *, non_empty: bool) -> list[FieldError]:
    errors: list[FieldError] = [required(path)] if non_empty and not containers else []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        container_path, name = f"{path}[{index}]", container.get("name", "")
        if not name:
            errors.append(required(f"{container_path}.name"))
        else:
            problems = names.dns_label(name)
            errors += [invalid(f"{container_path}.name", name, problem) for problem in problems]
        if name and name in seen:
            errors.append(duplicate(f"{container_path}.name", name))
        seen.add(name)
        if not container.get("image"):
            errors.append(required(f"{container_path}.image"))
        policy = container.get("imagePullPolicy")
        if policy and policy not in PULL_POLICIES:
            errors.append(not_supported(f"{container_path}.imagePullPolicy", policy, PULL_POLICIES))
    return errors


def _node_selector(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in (spec.get("nodeSelector") or {}).items():
        errors += [invalid(f"{path}.nodeSelector", key, problem) for problem in names.label_key(key)]
        errors += [invalid(f"{path}.nodeSelector", value, problem) for problem in names.label_value(value)]
    return errors


def _scheduling(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    group = spec.get("schedulingGroup")
    if group is not None:
        name_path, name = f"{path}.schedulingGroup.podGroupName", group.get("podGroupName")
        if name is None:
            errors.append(invalid(name_path, None, "must specify one of: `podGroupName`"))
        else:
            errors += [invalid(name_path, name, problem) for problem in names.dns_subdomain(name)]
        if spec.get("evictionResponders"):
            errors.append(
                forbidden(f"{path}.schedulingGroup", "may not be set when evictionResponders is set")
            )
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        gate_path, name = f"{path}.schedulingGates[{index}]", gate.get("name", "")
        errors += [invalid(gate_path, name, problem) for problem in names.label_key(name)]
        if name in seen:
            errors.append(duplicate(gate_path, name))
        seen.add(name)
    return errors


def check_new(pod: Object) -> list[FieldError]:
    """Return the errors of a new Pod."""
    errors = check_spec(pod.get("spec") or {}, "spec")
    spec = pod.get("spec") or {}
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def check_changed(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated Pod; few fields of its spec may change (ValidatePodUpdate)."""
    spec, old_spec = new.get("spec") or {}, old.get("spec") or {}
    errors = check_spec(spec, "spec")
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(old_spec.get(field) or ()):
            detail = "pod updates may not add or remove containers"
            return [*errors, forbidden(f"spec.{field}", detail)]
    deadline_errors, stop = _deadline(spec, old_spec)
    errors += deadline_errors
    if stop:
        return errors
    errors += _tolerations(spec, old_spec) + _gates(spec, old_spec)
    restored = _with_old_values(spec, old_spec)
    if old_spec.get("schedulingGates"):
        errors += _gated(restored, old_spec)
    if restored != old_spec:
        changed = sorted(
            key for key in restored.keys() | old_spec.keys() if restored.get(key) != old_spec.get(key)
        )
        diff = _diff(changed, old_spec, restored)
        detail = f"pod updates may not change fields other than {MUTABLE_FIELDS}\n{diff}"
        errors.append(forbidden("spec", detail))
    return errors


def _diff(changed: list[str], old_spec: Object, new_spec: Object) -> str:
    lines = []
    for key in changed:
        lines += [f"- {key}: {old_spec.get(key)!r}", f"+ {key}: {new_spec.get(key)!r}"]
    return "\n".join(lines)


def _deadline(spec: Object, old_spec: Object) -> tuple[list[FieldError], bool]:
    """Return the errors of `activeDeadlineSeconds`, and whether validation stops."""
    new, old = spec.get("activeDeadlineSeconds"), old_spec.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if new is None:
        detail = "must not update from a positive integer to nil value"
        return ([invalid(path, None, detail)] if old is not None else []), False
    if not 0 <= new <= MAX_INT32:
        return [invalid(path, new, f"must be between 0 and {MAX_INT32}, inclusive")], True
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _tolerations(spec: Object, old_spec: Object) -> list[FieldError]:
    def without_seconds(toleration: Object) -> Object:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [without_seconds(toleration) for toleration in spec.get("tolerations") or []]
    if all(without_seconds(toleration) in kept for toleration in old_spec.get("tolerations") or []):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden("spec.tolerations", detail)]


def _gates(spec: Object, old_spec: Object) -> list[FieldError]:
    old_gates = by_name(old_spec.get("schedulingGates"))
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(spec.get("schedulingGates") or [])
        if gate.get("name") not in old_gates
    ]


def _with_old_values(spec: Object, old_spec: Object) -> Object:
    """Return the new spec with every mutable field set back to its old value."""
    restored = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            restored[field] = [
                _with(container, "image", old.get("image"))
                for container, old in zip(spec[field], old_spec[field], strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        restored = _with(restored, field, old_spec.get(field))
    grace = old_spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and restored.get("terminationGracePeriodSeconds") == 1:
        restored["terminationGracePeriodSeconds"] = grace
    return restored


def _with(mapping: Object, key: str, value: Any) -> Object:
    rest = {name: item for name, item in mapping.items() if name != key}
    return rest if value is None else rest | {key: value}


def _gated(restored: Object, old_spec: Object) -> list[FieldError]:
    """Return the errors of node selector and node affinity, which a gated pod may narrow; restores both."""
    errors: list[FieldError] = []
    new, old = restored.get("nodeSelector") or {}, old_spec.get("nodeSelector") or {}
    if any(new.get(key) != value for key, value in old.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", new, detail))
    _set_or_remove(restored, "nodeSelector", old_spec.get("nodeSelector"))
    new_affinity, old_affinity = (
        at(restored, "affinity", "nodeAffinity"),
        at(old_spec, "affinity", "nodeAffinity"),
    )
    if new_affinity != old_affinity:
        errors += _affinity(new_affinity, old_affinity)
        affinity = _with(restored.get("affinity") or {}, "nodeAffinity", old_affinity)
        _set_or_remove(restored, "affinity", affinity or old_spec.get("affinity"))
    return errors


def _set_or_remove(spec: Object, key: str, value: Any) -> None:
    if value is None:
        spec.pop(key, None)
    else:
        spec[key] = value


def _affinity(new: Any, old: Any) -> list[FieldError]:
    required_terms = "requiredDuringSchedulingIgnoredDuringExecution"
    old_terms = at(old, required_terms, "nodeSelectorTerms") or []
    new_terms = at(new, required_terms, "nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{required_terms}.nodeSelectorTerms"
    if old_terms and len(old_terms) != len(new_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(path, new_terms, detail)]
    errors: list[FieldError] = []
    for index, (term, old_term) in enumerate(zip(new_terms, old_terms, strict=False)):
        kept = all(
            requirement in (term.get(field) or [])
            for field in ("matchExpressions", "matchFields")
            for requirement in old_term.get(field) or []
        )
        if not kept:
            detail = "only additions are allowed (no mutations or deletions)"
            errors.append(invalid(f"{path}[{index}]", term, detail))
    return errors


def check_status(new: Object, old: Object) -> list[FieldError]:
    """Return the errors of an updated status of a Pod."""
    status, old_status = new.get("status") or {}, old.get("status") or {}
    errors: list[FieldError] = []
    for index, condition in enumerate(status.get("conditions") or []):
        problems = names.label_key(condition.get("type", ""))
        errors += [
            invalid(f"status.conditions[{index}].type", condition.get("type"), problem)
            for problem in problems
        ]
    nominated = status.get("nominatedNodeName", "")
    if nominated != old_status.get("nominatedNodeName", "") and nominated:
        errors += [
            invalid("status.nominatedNodeName", nominated, problem)
            for problem in names.dns_subdomain(nominated)
        ]
        if at(old, "spec", "nodeName"):
            detail = "may not be set on pods that are already bound to a node"
            errors.append(forbidden("status.nominatedNodeName", detail))
    if status.get("qosClass") != old_status.get("qosClass"):
        errors.append(immutable("status.qosClass", status.get("qosClass")))
    return errors
