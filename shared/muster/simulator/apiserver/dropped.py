"""Fields whose feature gate is off: left out of new objects without a word, kept where they already are.

Sources (v1.37.1): `pkg/registry/scheduling/{workload,podgroup,compositepodgroup}/strategy.go`,
`pkg/api/pod/util.go`, `pkg/api/job/util.go`.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, by_name

PREEMPTION_1_36 = ("disruptionMode", "priorityClassName", "priority")


def drop_disabled(kind: Kind, obj: Object, old: Object | None, gates: Gates) -> None:
    """Drop what the gates do not allow from an object, which is a fresh copy.

    Args:
        kind: what the object is.
        obj: the object; changed.
        old: the stored object, None at creation; a field it has is in use and stays.
        gates: the switches.
    """
    if kind.custom:
        return
    spec, before = obj.get("spec") or {}, (old or {}).get("spec") or {}
    if kind.kind == "Pod":
        _unless(gates.generic_workload, spec, before, "schedulingGroup")
    elif kind.kind == "Job":
        _unless(gates.workload_with_job, spec, before, "scheduling")
        template, old_template = at(spec, "template", "spec") or {}, at(before, "template", "spec") or {}
        _unless(gates.generic_workload, template, old_template, "schedulingGroup")
    elif kind.kind == "Workload":
        _workload(spec, before, gates, old_release=kind.version == "v1alpha2")
    elif kind.kind in {"PodGroup", "CompositePodGroup"}:
        _group(kind, spec, before, gates)


def _unless(enabled: bool, spec: Object, before: Object, *fields: str) -> None:
    for field in fields:
        if not enabled and not before.get(field):
            spec.pop(field, None)


def _settings(template: Object, before: Object, gates: Gates, *, old_release: bool) -> None:
    enabled = gates.topology_aware_workload_scheduling
    if not enabled and before.get("schedulingConstraints") is None and "schedulingConstraints" in template:
        template["schedulingConstraints"] = None
    _unless(gates.dra_workload_resource_claims, template, before, "resourceClaims")
    if old_release:
        _unless(gates.workload_aware_preemption, template, before, *PREEMPTION_1_36)
    else:
        _unless(gates.pod_group_preemption_policy, template, before, "preemptionPolicy")


def _group(kind: Kind, spec: Object, before: Object, gates: Gates) -> None:
    old_release = kind.version == "v1alpha2"
    if kind.kind == "PodGroup":
        _settings(spec, before, gates, old_release=old_release)
        if spec.get("schedulingConstraints") is None:
            spec.pop("schedulingConstraints", None)
        _unless(gates.composite_pod_group, spec, before, "parentCompositePodGroupName")
    else:
        _unless(gates.pod_group_preemption_policy, spec, before, "preemptionPolicy")


def _workload(spec: Object, before: Object, gates: Gates, *, old_release: bool) -> None:
    old_templates = before.get("podGroupTemplates") or []
    for index, template in enumerate(spec.get("podGroupTemplates") or []):
        old = old_templates[index] if index < len(old_templates) else {}
        _settings(template, old, gates, old_release=old_release)
    _unless(gates.composite_pod_group, spec, before, "compositePodGroupTemplates")
    _composites(
        spec.get("compositePodGroupTemplates") or [], before.get("compositePodGroupTemplates") or [], gates
    )


def _composites(templates: Iterable[Object], before: list[Object], gates: Gates) -> None:
    known = by_name(before)
    for template in templates:
        old = known.get(template.get("name"), {})
        _unless(gates.pod_group_preemption_policy, template, old, "preemptionPolicy")
        _workload(template, old, gates, old_release=False)
