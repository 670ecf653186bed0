"""Fields of disabled feature gates: removed silently, unless the stored object already uses them.

Sources (v1.37.1): `pkg/registry/scheduling/{workload,podgroup,compositepodgroup}/strategy.go`,
`pkg/api/pod/util.go`, `pkg/api/job/util.go`.
"""

from __future__ import annotations

from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, by_name


def drop_disabled_fields(kind: Kind, obj: Object, old: Object | None, gates: Gates) -> None:
    """Remove the fields of disabled gates from an object of a built-in kind."""
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
