"""Translation between the versions of scheduling.k8s.io. No other module depends on their differences.

Muster uses the shape of v1beta1 (1.37). 1.36 serves v1alpha2 only, in which the reference to a template, the
disruption mode and the condition of a placed group are spelled differently, and which has neither composites
nor a mutable minCount (pkg/apis/scheduling/types.go, Kubernetes v1.36.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from muster.objects.resources import COMPOSITE_POD_GROUPS, POD_GROUPS, V1ALPHA2, WORKLOADS, SchedulingApi

GROUP = WORKLOADS.group
HOW_TO_SWITCH_ON = (
    "the API server serves neither scheduling.k8s.io/v1beta1 (1.37) nor v1alpha2 (1.36): set "
    "--feature-gates=GenericWorkload=true and --runtime-config=scheduling.k8s.io/v1beta1=true on it "
    "(1.36: also GangScheduling=true, and v1alpha2), "
    "and the same gates on kube-scheduler and kube-controller-manager"
)
GATES_OF_THE_SCHEDULER = "it needs GenericWorkload=true, too (1.36: also GangScheduling=true)"
_OLD_PLACED, _PLACED = "PodGroupScheduled", "PodGroupInitiallyScheduled"
_OLD_MODES = {"Pod": "single", "PodGroup": "all"}


def choose(served: frozenset[str]) -> SchedulingApi:
    """Return the versions to use."""
    usable = [
        version
        for version in (WORKLOADS.version, V1ALPHA2)
        if {f"{version}/{WORKLOADS.plural}", f"{version}/{POD_GROUPS.plural}"} <= served
    ]
    composites = f"{COMPOSITE_POD_GROUPS.version}/{COMPOSITE_POD_GROUPS.plural}" in served
    return SchedulingApi(usable[0] if usable else "", composites=composites)


def to_served(api: SchedulingApi, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object or patch of v1beta1, translated to the served version."""
    return _translated(body, api.version, _object_to_old) if api.version == V1ALPHA2 else dict(body)


def from_served(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object of the served version, translated to v1beta1."""
    is_v1alpha2 = body.get("apiVersion") == f"{GROUP}/{V1ALPHA2}"  # JobSet has a v1alpha2 too
    return _translated(body, WORKLOADS.version, _object_from_old) if is_v1alpha2 else dict(body)


def _translated(
    body: Mapping[str, Any], version: str, translate: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    copy = deepcopy(dict(body))
    if "apiVersion" in copy:
        copy["apiVersion"] = f"{GROUP}/{version}"
    for owner in copy.get("metadata", {}).get("ownerReferences") or []:
        if owner.get("apiVersion", "").startswith(f"{GROUP}/"):
            owner["apiVersion"] = f"{GROUP}/{version}"
    translate(copy)
    return copy


def _object_to_old(body: dict[str, Any]) -> None:
    spec = body.get("spec") or {}
    reference = spec.pop("workloadRef", None)
    if reference is not None:
        names = {"workloadName": reference["workloadName"], "podGroupTemplateName": reference["templateName"]}
        spec["podGroupTemplateRef"] = {"workload": names}
    old_modes = {mode: name for name, mode in _OLD_MODES.items()}
    for holder in (spec, *(spec.get("podGroupTemplates") or [])):
        if holder.get("disruptionMode"):
            holder["disruptionMode"] = old_modes[next(iter(holder["disruptionMode"]))]


def _object_from_old(body: dict[str, Any]) -> None:
    spec = body.get("spec") or {}
    old = (spec.pop("podGroupTemplateRef", None) or {}).get("workload")
    if old is not None:
        names = {"workloadName": old["workloadName"], "templateName": old["podGroupTemplateName"]}
        spec["workloadRef"] = names
    for holder in (spec, *(spec.get("podGroupTemplates") or [])):
        if holder.get("disruptionMode"):
            holder["disruptionMode"] = {_OLD_MODES[holder["disruptionMode"]]: {}}
    for condition in (body.get("status") or {}).get("conditions") or []:
        if condition.get("type") == _OLD_PLACED:
            condition["type"] = _PLACED
