"""The rules of Pods that Muster, its users and the simulated scheduler meet.

Source (v1.37.1): `pkg/apis/core/validation/validation.go`. Rules about volumes, probes, ports, security and
resources are left out: no step reads those fields.
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

UPDATABLE = (
    "`spec.containers[*].image`,"
    "`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_spec(spec: Object, path: str) -> list[FieldError]:
    """What is wrong with a PodSpec, in a Pod or in a template."""
    errors = _containers(spec.get("containers") or [], f"{path}.containers", needed=True)
    errors += _containers(spec.get("initContainers") or [], f"{path}.initContainers", needed=False)
    taken = {container.get("name") for container in spec.get("containers") or []}
    for index, container in enumerate(spec.get("initContainers") or []):
        if container.get("name") in taken:
            errors.append(duplicate(f"{path}.initContainers[{index}].name", container.get("name")))
    policy = spec.get("restartPolicy")
    if not policy:
        errors.append(required(f"{path}.restartPolicy"))
    elif policy not in RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, RESTART_POLICIES))
    if spec.get("nodeName"):
        errors += [
            invalid(f"{path}.nodeName", spec["nodeName"], w) for w in names.dns_subdomain(spec["nodeName"])
        ]
    return errors + _labels(spec, path) + _scheduling(spec, path)


def _containers(containers: list[Object], path: str, *, needed: bool) -> list[FieldError]:
    errors: list[FieldError] = [required(path)] if needed and not containers else []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        where, name = f"{path}[{index}]", container.get("name", "")
        if not name:
            errors.append(required(f"{where}.name"))
        else:
            errors += [invalid(f"{where}.name", name, problem) for problem in names.dns_label(name)]
        if name and name in seen:
            errors.append(duplicate(f"{where}.name", name))
        seen.add(name)
        if not container.get("image"):
            errors.append(required(f"{where}.image"))
        policy = container.get("imagePullPolicy")
        if policy and policy not in PULL_POLICIES:
            errors.append(not_supported(f"{where}.imagePullPolicy", policy, PULL_POLICIES))
    return errors


def _labels(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, value in (spec.get("nodeSelector") or {}).items():
        errors += [invalid(f"{path}.nodeSelector", key, problem) for problem in names.label_key(key)]
        errors += [invalid(f"{path}.nodeSelector", value, problem) for problem in names.label_value(value)]
    return errors


def _scheduling(spec: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    group = spec.get("schedulingGroup")
    if group is not None:
        where, name = f"{path}.schedulingGroup.podGroupName", group.get("podGroupName")
        if name is None:
            errors.append(invalid(where, None, "must specify one of: `podGroupName`"))
        else:
            errors += [invalid(where, name, problem) for problem in names.dns_subdomain(name)]
        if spec.get("evictionResponders"):
            errors.append(
                forbidden(f"{path}.schedulingGroup", "may not be set when evictionResponders is set")
            )
    seen: set[str] = set()
    for index, gate in enumerate(spec.get("schedulingGates") or []):
        where, name = f"{path}.schedulingGates[{index}]", gate.get("name", "")
        errors += [invalid(where, name, problem) for problem in names.label_key(name)]
        if name in seen:
            errors.append(duplicate(where, name))
        seen.add(name)
    return errors


def check_new(pod: Object) -> list[FieldError]:
    """What is wrong with a Pod about to be created."""
    errors = check_spec(pod.get("spec") or {}, "spec")
    spec = pod.get("spec") or {}
    if spec.get("nodeName") and spec.get("schedulingGates"):
        errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return errors


def check_changed(new: Object, old: Object) -> list[FieldError]:
    """What is wrong with a Pod's update: nearly everything of its spec is frozen (ValidatePodUpdate)."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    errors = check_spec(spec, "spec")
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(before.get(field) or ()):
            detail = "pod updates may not add or remove containers"
            return [*errors, forbidden(f"spec.{field}", detail)]
    found, ends = _deadline(spec, before)
    errors += found
    if ends:
        return errors
    errors += _tolerations(spec, before) + _gates(spec, before)
    munged = _munged(spec, before)
    if before.get("schedulingGates"):
        errors += _gated(munged, before)
    if munged != before:
        changed = sorted(key for key in munged.keys() | before.keys() if munged.get(key) != before.get(key))
        detail = (
            f"pod updates may not change fields other than {UPDATABLE}\n{_shown(changed, before, munged)}"
        )
        errors.append(forbidden("spec", detail))
    return errors


def _shown(changed: list[str], before: Object, after: Object) -> str:
    lines = []
    for key in changed:
        lines += [f"- {key}: {before.get(key)!r}", f"+ {key}: {after.get(key)!r}"]
    return "\n".join(lines)


def _deadline(spec: Object, before: Object) -> tuple[list[FieldError], bool]:
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    path = "spec.activeDeadlineSeconds"
    if new is None:
        detail = "must not update from a positive integer to nil value"
        return ([invalid(path, None, detail)] if old is not None else []), False
    if not 0 <= new <= MAX_INT32:
        return [invalid(path, new, f"must be between 0 and {MAX_INT32}, inclusive")], True
    if old is not None and old < new:
        return [invalid(path, new, "must be less than or equal to previous value")], True
    return [], False


def _tolerations(spec: Object, before: Object) -> list[FieldError]:
    def lasting(toleration: Object) -> Object:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [lasting(toleration) for toleration in spec.get("tolerations") or []]
    if all(lasting(toleration) in kept for toleration in before.get("tolerations") or []):
        return []
    detail = "existing toleration can not be modified except its tolerationSeconds"
    return [forbidden("spec.tolerations", detail)]


def _gates(spec: Object, before: Object) -> list[FieldError]:
    old = by_name(before.get("schedulingGates"))
    return [
        forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(spec.get("schedulingGates") or [])
        if gate.get("name") not in old
    ]


def _munged(spec: Object, before: Object) -> Object:
    """The new spec with every field that may change set back to its old value."""
    munged = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            munged[field] = [
                _with(container, "image", old.get("image"))
                for container, old in zip(spec[field], before[field], strict=True)
            ]
    for field in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        munged = _with(munged, field, before.get(field))
    grace = before.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = grace
    return munged


def _with(mapping: Object, key: str, value: Any) -> Object:
    rest = {name: item for name, item in mapping.items() if name != key}
    return rest if value is None else rest | {key: value}


def _gated(munged: Object, before: Object) -> list[FieldError]:
    """A gated pod's node selector and node affinity may become narrower; sets them back in `munged`."""
    errors: list[FieldError] = []
    new, old = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(new.get(key) != value for key, value in old.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", new, detail))
    _set_back(munged, "nodeSelector", before.get("nodeSelector"))
    new_affinity, old_affinity = (
        at(munged, "affinity", "nodeAffinity"),
        at(before, "affinity", "nodeAffinity"),
    )
    if new_affinity != old_affinity:
        errors += _affinity(new_affinity, old_affinity)
        affinity = _with(munged.get("affinity") or {}, "nodeAffinity", old_affinity)
        _set_back(munged, "affinity", affinity or before.get("affinity"))
    return errors


def _set_back(munged: Object, key: str, value: Any) -> None:
    if value is None:
        munged.pop(key, None)
    else:
        munged[key] = value


def _affinity(new: Any, old: Any) -> list[FieldError]:
    needed = "requiredDuringSchedulingIgnoredDuringExecution"
    old_terms = at(old, needed, "nodeSelectorTerms") or []
    new_terms = at(new, needed, "nodeSelectorTerms") or []
    path = f"spec.affinity.nodeAffinity.{needed}.nodeSelectorTerms"
    if old_terms and len(old_terms) != len(new_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(path, new_terms, detail)]
    errors: list[FieldError] = []
    for index, (term, before) in enumerate(zip(new_terms, old_terms, strict=False)):
        kept = all(
            requirement in (term.get(field) or [])
            for field in ("matchExpressions", "matchFields")
            for requirement in before.get(field) or []
        )
        if not kept:
            detail = "only additions are allowed (no mutations or deletions)"
            errors.append(invalid(f"{path}[{index}]", term, detail))
    return errors


def check_status(new: Object, old: Object) -> list[FieldError]:
    """What is wrong with an update of a Pod's status."""
    status, before = new.get("status") or {}, old.get("status") or {}
    errors: list[FieldError] = []
    for index, condition in enumerate(status.get("conditions") or []):
        problems = names.label_key(condition.get("type", ""))
        errors += [invalid(f"status.conditions[{index}].type", condition.get("type"), w) for w in problems]
    nominated = status.get("nominatedNodeName", "")
    if nominated != before.get("nominatedNodeName", "") and nominated:
        errors += [invalid("status.nominatedNodeName", nominated, w) for w in names.dns_subdomain(nominated)]
        if at(old, "spec", "nodeName"):
            detail = "may not be set on pods that are already bound to a node"
            errors.append(forbidden("status.nominatedNodeName", detail))
    if status.get("qosClass") != before.get("qosClass"):
        errors.append(immutable("status.qosClass", status.get("qosClass")))
    return errors
