"""Validation of Workload, PodGroup and CompositePodGroup.

Sources (v1.37.1): `pkg/apis/scheduling/{v1beta1,v1alpha3}/zz_generated.validations.go` for the structs,
`pkg/apis/scheduling/validation/validation.go` for the functions; for 1.36 (v1.36.3) those of `v1alpha2`,
where the spec of a Workload and the policy of a PodGroup are immutable, and which has no composites.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.refusals import FieldError, duplicate, invalid, required
from muster.simulator.apiserver.validation import names
from muster.simulator.apiserver.validation.rules import Field, Struct, check

COMPOSITES = "compositePodGroupTemplates"
MAX_TEMPLATES = 8
MAX_DEPTH = 4
MAX_PRIORITY = 1_000_000_000

BASIC_OR_GANG = ("basic", "gang")
_LABEL = Field(required=True, form=names.DNS_LABEL)
_SUBDOMAIN = Field(required=True, form=names.DNS_SUBDOMAIN)
_SEGMENT = Field(required=True, form=names.PATH_SEGMENT)
_TOPOLOGY = Struct({"key": Field(required=True, form=names.LABEL_KEY)})
CONSTRAINTS = Struct({"topology": Field(max_items=1, optional=True, struct=_TOPOLOGY)})
DISRUPTION = Struct({}, ("single", "all"))
_CONTROLLER_REF = Struct(
    {"apiGroup": Field(optional=True, form=names.DNS_SUBDOMAIN), "kind": _SEGMENT, "name": _SEGMENT}
)
_CONTROLLER = Field(immutable=True, optional=True, struct=_CONTROLLER_REF)
_WORKLOAD_REF = Struct({"workloadName": _SUBDOMAIN, "templateName": _LABEL})
_PARENT = Field(immutable=True, optional=True, form=names.DNS_SUBDOMAIN)


def _policy(count_field: str) -> Struct:
    gang = Struct({count_field: Field(required=True, least=1)})
    fields = {
        "basic": Field(immutable=True, optional=True),
        "gang": Field(kept=True, optional=True, struct=gang),
    }
    return Struct(fields, BASIC_OR_GANG)


def _common_fields(*, required: bool) -> dict[str, Field]:
    """Return the fields that templates and groups share; a group's disruptionMode is required."""
    return {
        "schedulingConstraints": Field(immutable=True, optional=True, struct=CONSTRAINTS),
        "disruptionMode": Field(immutable=True, required=required, optional=not required, struct=DISRUPTION),
        "priorityClassName": Field(immutable=True, optional=True, form=names.DNS_SUBDOMAIN),
        "priority": Field(immutable=True, most=MAX_PRIORITY),
        "preemptionPolicy": Field(immutable=True, optional=True, values=("PreemptLowerPriority", "Never")),
    }


def _templates(struct: Struct) -> Field:
    return Field(max_items=MAX_TEMPLATES, named=True, optional=True, struct=struct)


_PG_POLICY = Field(always=True, struct=_policy("minCount"))
_CPG_POLICY = _policy("minGroupCount")
_PG_TEMPLATE = Struct({"name": _LABEL, "schedulingPolicy": _PG_POLICY, **_common_fields(required=False)})
_CPG_TEMPLATE = Struct(
    {
        "name": _LABEL,
        "schedulingPolicy": Field(always=True, struct=_CPG_POLICY),
        **_common_fields(required=False),
        "podGroupTemplates": _templates(_PG_TEMPLATE),
    }
)
_CPG_TEMPLATE.fields["compositePodGroupTemplates"] = _templates(_CPG_TEMPLATE)

_GANG_1_36 = Struct({"minCount": Field(required=True, least=1)})
_POLICY_1_36 = Struct(
    {"basic": Field(optional=True), "gang": Field(optional=True, struct=_GANG_1_36)}, BASIC_OR_GANG
)
_TEMPLATE_REF_1_36 = Struct({"workloadName": _SUBDOMAIN, "podGroupTemplateName": _LABEL})
_REFERENCE_1_36 = Struct({"workload": Field(optional=True, struct=_TEMPLATE_REF_1_36)}, ("workload",))
_CONSTRAINTS_1_36 = {"schedulingConstraints": Field(immutable=True, optional=True, struct=CONSTRAINTS)}
_TEMPLATE_1_36 = Struct(
    {"name": _LABEL, "schedulingPolicy": Field(always=True, struct=_POLICY_1_36), **_CONSTRAINTS_1_36}
)
_TEMPLATES_1_36 = Field(
    immutable=True, max_items=MAX_TEMPLATES, required=True, named=True, struct=_TEMPLATE_1_36
)

_SPECS = {
    "Workload": Struct(
        {
            "controllerRef": _CONTROLLER,
            "podGroupTemplates": _templates(_PG_TEMPLATE),
            "compositePodGroupTemplates": _templates(_CPG_TEMPLATE),
        },
        ("podGroupTemplates", "compositePodGroupTemplates"),
    ),
    "PodGroup": Struct(
        {
            "parentCompositePodGroupName": _PARENT,
            "workloadRef": Field(immutable=True, optional=True, struct=_WORKLOAD_REF),
            "schedulingPolicy": _PG_POLICY,
            **_common_fields(required=True),
        }
    ),
    "CompositePodGroup": Struct(
        {
            "parentCompositePodGroupName": _PARENT,
            "workloadRef": Field(immutable=True, required=True, struct=_WORKLOAD_REF),
            "schedulingPolicy": Field(immutable=True, always=True, struct=_CPG_POLICY),
            **_common_fields(required=True),
        }
    ),
}
_SPECS_1_36 = {
    "Workload": Struct({"controllerRef": _CONTROLLER, "podGroupTemplates": _TEMPLATES_1_36}),
    "PodGroup": Struct(
        {
            "podGroupTemplateRef": Field(immutable=True, optional=True, struct=_REFERENCE_1_36),
            "schedulingPolicy": Field(immutable=True, always=True, struct=_POLICY_1_36),
            **_CONSTRAINTS_1_36,
        }
    ),
}


def check_spec(kind: Kind, new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of the spec of a Workload or a group."""
    spec, old_spec = new.get("spec") or {}, None if old is None else old.get("spec") or {}
    if kind.version == "v1alpha2":
        return check(_SPECS_1_36[kind.kind], spec, old_spec, "spec")
    errors: list[FieldError] = []
    if kind.kind == "Workload":
        errors = _tree_errors(spec)
    elif old is None and "parentCompositePodGroupName" in spec and not spec.get("workloadRef"):
        errors.append(required("spec.workloadRef", "must be set with parentCompositePodGroupName"))
    return errors + check(_SPECS[kind.kind], spec, old_spec, "spec")


def _tree_errors(spec: Object) -> list[FieldError]:
    """Return the errors of a Workload's templates as a tree: names, depth, priorities, missing children."""
    nodes = list(_nodes(spec, "spec"))
    errors: list[FieldError] = []
    seen: dict[Any, str] = {}
    for path, template in nodes:
        siblings = seen.setdefault(template.get("name"), path.rpartition("[")[0])
        if not path.startswith(f"{siblings}["):  # `named` is about those of one list
            errors.append(duplicate(f"{path}.name", template.get("name")))
    deep = {path.partition("]")[0]: path for path, _ in nodes if path.count(COMPOSITES) >= MAX_DEPTH}
    errors += [invalid(f"{root}]", None, f"has more than {MAX_DEPTH} levels") for root in deep]
    if len({(node.get("priorityClassName") or "", node.get("priority")) for _, node in nodes}) > 1:
        errors.append(invalid("spec", None, "all priorities and priority classes must be identical"))
    for path, node in nodes:
        is_composite = path.rpartition(".")[2].startswith(COMPOSITES)
        if is_composite and not node.get(COMPOSITES) and not node.get("podGroupTemplates"):
            errors.append(invalid(path, node.get("name", ""), "must have at least one child"))
    return errors


def _nodes(parent: Object, path: str) -> Iterator[tuple[str, Object]]:
    """Yield path and content of each template below a Workload's spec or a composite template."""
    for field in ("podGroupTemplates", COMPOSITES):
        for index, template in enumerate(parent.get(field) or []):
            here = f"{path}.{field}[{index}]"
            yield here, template
            yield from _nodes(template, here)
