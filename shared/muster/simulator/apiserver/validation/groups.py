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

MAX_TEMPLATES = 8
MAX_DEPTH = 4
MAX_PRIORITY = 1_000_000_000

BASIC_OR_GANG = ("basic", "gang")
_LABEL = Field(required=True, form=names.dns_label)
_SUBDOMAIN = Field(required=True, form=names.dns_subdomain)
_SEGMENT = Field(required=True, form=names.path_segment)
_TOPOLOGY = Struct({"key": Field(required=True, form=names.label_key)})
CONSTRAINTS = Struct({"topology": Field(max_items=1, optional=True, struct=_TOPOLOGY)})
DISRUPTION = Struct({}, ("single", "all"))
_CONTROLLER_REF = Struct(
    {"apiGroup": Field(optional=True, form=names.dns_subdomain), "kind": _SEGMENT, "name": _SEGMENT}
)
_CONTROLLER = Field(immutable=True, optional=True, struct=_CONTROLLER_REF)
_WORKLOAD_REF = Struct({"workloadName": _SUBDOMAIN, "templateName": _LABEL})
_PARENT = Field(immutable=True, optional=True, form=names.dns_subdomain)


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
        "priorityClassName": Field(immutable=True, optional=True, form=names.dns_subdomain),
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


_CONDITION = Struct(
    {
        "type": Field(required=True, form=names.label_key),
        "status": Field(required=True, values=("False", "True", "Unknown")),
        "lastTransitionTime": Field(required=True),
        "reason": Field(required=True, longest=1024, form=names.condition_reason),
        "message": Field(longest=32 * 1024),
    }
)
_STATUS = Struct({"conditions": Field(struct=_CONDITION)})


def check_status(new: Object) -> list[FieldError]:
    """Return the errors of the conditions of a group (`pkg/apis/meta/v1/validation/validation.go`)."""
    return check(_STATUS, new.get("status") or {}, None, "status")


def check_spec(kind: Kind, new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of the spec of a Workload or a group."""
    spec, old_spec = new.get("spec") or {}, None if old is None else old.get("spec") or {}
    if kind.version == "v1alpha2":
        return check(_SPECS_1_36[kind.kind], spec, old_spec, "spec")
    errors: list[FieldError] = []
    if kind.kind == "Workload":
        errors = _unique_names(spec) + _depth(spec) + _same_priority(spec)
        for index, template in enumerate(spec.get("compositePodGroupTemplates") or []):
            errors += _has_child(template, f"spec.compositePodGroupTemplates[{index}]")
    elif kind.kind == "PodGroup" and old is None and _needs_reference(spec):
        why = "must be set when parentCompositePodGroupName is set"
        errors.append(required("spec.workloadRef", why))
    return errors + check(_SPECS[kind.kind], spec, old_spec, "spec")


def _needs_reference(spec: Object) -> bool:
    return spec.get("parentCompositePodGroupName") is not None and not spec.get("workloadRef")


def _unique_names(spec: Object) -> list[FieldError]:
    """Check that template names are unique in the tree; `unique` checks those within a list."""
    seen = {template.get("name") for template in spec.get("podGroupTemplates") or []}
    return _names_below(spec.get("compositePodGroupTemplates") or [], "spec", seen)


def _names_below(templates: list[Object], path: str, seen: set[Any]) -> list[FieldError]:
    errors = _repeated(templates, f"{path}.compositePodGroupTemplates", seen)
    for index, template in enumerate(templates):
        here = f"{path}.compositePodGroupTemplates[{index}]"
        errors += _repeated(template.get("podGroupTemplates") or [], f"{here}.podGroupTemplates", seen)
        errors += _names_below(template.get("compositePodGroupTemplates") or [], here, seen)
    return errors


def _repeated(templates: list[Object], path: str, seen: set[Any]) -> list[FieldError]:
    """Return the errors of names that were seen before; adds the names of this list to `seen`."""
    listed = [template.get("name") for template in templates]
    errors = [duplicate(f"{path}[{i}].name", name) for i, name in enumerate(listed) if name in seen]
    seen.update(listed)
    return errors


def _depth(spec: Object) -> list[FieldError]:
    def height(template: Object) -> int:
        children = template.get("compositePodGroupTemplates") or []
        return 1 + max((height(child) for child in children), default=0)

    return [
        invalid(
            f"spec.compositePodGroupTemplates[{index}]",
            template.get("compositePodGroupTemplates"),
            f"maximum template hierarchy depth is {MAX_DEPTH}",
        )
        for index, template in enumerate(spec.get("compositePodGroupTemplates") or [])
        if height(template) >= MAX_DEPTH
    ]


def _same_priority(spec: Object) -> list[FieldError]:
    priorities = {
        (node.get("priorityClassName") or "", node.get("priority"))
        for node in _nodes({**spec, "name": None})
        if node.get("name") is not None
    }
    why = "all priority and priorityClassName values must be identical, detected multiple values"
    return [invalid("spec", None, why)] if len(priorities) > 1 else []


def _nodes(template: Object) -> Iterator[Object]:
    yield template
    yield from template.get("podGroupTemplates") or []
    for child in template.get("compositePodGroupTemplates") or []:
        yield from _nodes(child)


def _has_child(template: Object, path: str) -> list[FieldError]:
    children = template.get("compositePodGroupTemplates") or []
    errors: list[FieldError] = []
    if not children and not template.get("podGroupTemplates"):
        detail = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
        errors.append(invalid(path, template.get("name", ""), detail))
    for index, child in enumerate(children):
        errors += _has_child(child, f"{path}.compositePodGroupTemplates[{index}]")
    return errors
