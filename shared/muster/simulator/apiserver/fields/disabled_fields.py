"""Drop fields whose feature gate is disabled, unless the stored object already uses them.

Sources (v1.37.1): `pkg/registry/scheduling/{workload,podgroup,compositepodgroup}/strategy.go`,
`pkg/api/pod/util.go`, `pkg/api/job/util.go`.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, by_name

PREEMPTION_FIELDS_1_36 = ("disruptionMode", "priorityClassName", "priority")


def drop_disabled_fields(kind: Kind, obj: Object, old: Object | None, gates: Gates) -> None:
    """Remove the fields of disabled gates from an object."""
    if kind.custom:
        return
    spec, old_spec = obj.get("spec") or {}, (old or {}).get("spec") or {}
    if kind.kind == "Pod":
        _drop_unless(gates.generic_workload, spec, old_spec, "schedulingGroup")
    elif kind.kind == "Job":
        _drop_unless(gates.workload_with_job, spec, old_spec, "scheduling")
        template, old_template = at(spec, "template", "spec") or {}, at(old_spec, "template", "spec") or {}
        _drop_unless(gates.generic_workload, template, old_template, "schedulingGroup")
    elif kind.kind == "Workload":
        _drop_in_workload(spec, old_spec, gates, is_1_36=kind.version == "v1alpha2")
    elif kind.kind in {"PodGroup", "CompositePodGroup"}:
        _drop_in_group(kind, spec, old_spec, gates)


def _drop_unless(enabled: bool, spec: Object, old: Object, *fields: str) -> None:
    for field in fields:
        if not enabled and not old.get(field):
            spec.pop(field, None)


def _drop_in_template(template: Object, old: Object, gates: Gates, *, is_1_36: bool) -> None:
    enabled = gates.topology_aware_workload_scheduling
    if not enabled and old.get("schedulingConstraints") is None and "schedulingConstraints" in template:
        template["schedulingConstraints"] = None
    _drop_unless(gates.dra_workload_resource_claims, template, old, "resourceClaims")
    if is_1_36:
        _drop_unless(gates.workload_aware_preemption, template, old, *PREEMPTION_FIELDS_1_36)
    else:
        _drop_unless(gates.pod_group_preemption_policy, template, old, "preemptionPolicy")


def _drop_in_group(kind: Kind, spec: Object, old: Object, gates: Gates) -> None:
    if kind.kind == "PodGroup":
        _drop_in_template(spec, old, gates, is_1_36=kind.version == "v1alpha2")
        if spec.get("schedulingConstraints") is None:
            spec.pop("schedulingConstraints", None)
        _drop_unless(gates.composite_pod_group, spec, old, "parentCompositePodGroupName")
    else:
        _drop_unless(gates.pod_group_preemption_policy, spec, old, "preemptionPolicy")


def _drop_in_workload(spec: Object, old: Object, gates: Gates, *, is_1_36: bool) -> None:
    old_templates = old.get("podGroupTemplates") or []
    for index, template in enumerate(spec.get("podGroupTemplates") or []):
        old_template = old_templates[index] if index < len(old_templates) else {}
        _drop_in_template(template, old_template, gates, is_1_36=is_1_36)
    _drop_unless(gates.composite_pod_group, spec, old, "compositePodGroupTemplates")
    _drop_in_composites(
        spec.get("compositePodGroupTemplates") or [], old.get("compositePodGroupTemplates") or [], gates
    )


def _drop_in_composites(templates: Iterable[Object], old_templates: list[Object], gates: Gates) -> None:
    old_by_name = by_name(old_templates)
    for template in templates:
        old = old_by_name.get(template.get("name"), {})
        _drop_unless(gates.pod_group_preemption_policy, template, old, "preemptionPolicy")
        _drop_in_workload(template, old, gates, is_1_36=False)
