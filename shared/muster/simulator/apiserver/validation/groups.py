"""Validation of Workload, PodGroup and CompositePodGroup: the rules of each field, and what applies them.

Sources (v1.37.1): `pkg/apis/scheduling/{v1beta1,v1alpha3}/zz_generated.validations.go` for the structs,
`pkg/apis/scheduling/validation/validation.go` for the functions, `pkg/api/validate` of k8s.io/apimachinery
for the rules; for 1.36 (v1.36.3) those of `v1alpha2`, where the spec of a Workload and the policy of a
PodGroup are immutable, and which has no composites. An update validates only the fields that it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.refusals import (
    FieldError,
    duplicate,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    too_many,
)
from muster.simulator.apiserver.validation import metadata

Value = Mapping[str, Any]


@dataclass(frozen=True)
class Field:
    """The rules of a field.

    They are applied in this order; up to `optional` a broken one ends the validation of the field.

    Attributes:
        immutable: the value does not change.
        kept: the field is not set or cleared later; its content may change.
        max_items: the most items of a list.
        named: the names of a list's items are unique, and no item is added or removed later.
        required: the value is set and not zero.
        optional: an unset value ends the validation.
        form: what is wrong with a text.
        least: the smallest number.
        most: the largest number.
        values: the only values.
        struct: the rules of the value or of each item.
        always: an unset struct is validated as an empty one.
    """

    immutable: bool = False
    kept: bool = False
    max_items: int = 0
    named: bool = False
    required: bool = False
    optional: bool = False
    form: metadata.Form | None = None
    least: int | None = None
    most: int | None = None
    values: tuple[str, ...] = ()
    struct: Struct | None = None
    always: bool = False


@dataclass(frozen=True)
class Struct:
    """The rules of a Go struct, exactly one of whose fields in `one_of` is set."""

    fields: dict[str, Field]
    one_of: tuple[str, ...] = ()


def check(struct: Struct, value: Value, old: Value | None, path: str) -> list[FieldError]:
    """Return the errors of a struct; `old` is None on creation."""
    errors = []
    found, before = (
        [name for name in struct.one_of if (v or {}).get(name) not in (None, [])] for v in (value, old)
    )
    if struct.one_of and len(found) != 1 and not (old and found == before):
        why = f"must specify exactly one of: {', '.join(struct.one_of)}"
        errors.append(invalid(path, ", ".join(found), why))
    for name, field in struct.fields.items():
        errors += _field(field, value.get(name), old, f"{path}.{name}", name)
    return errors


def _field(field: Field, value: Any, parent: Value | None, path: str, name: str) -> list[FieldError]:
    updating, old = parent is not None, (parent or {}).get(name)
    if updating and value == old:
        return []
    errors = list(_final(field, value, old, path, updating=updating))
    if errors or (field.optional and value in (None, "", [])):
        return errors
    errors = list(_further(field, value, path))
    if field.struct is None or (value is None and not field.always):
        return errors
    if not isinstance(value, list):
        return errors + check(
            field.struct, value or {}, (old or ({} if field.always else None)) if updating else None, path
        )
    old_items = {item.get("name"): item for item in old or []} if field.named else {}
    for index, item in enumerate(value):
        before = old_items.get(item.get("name"))
        if before is None or before != item:
            errors += check(field.struct, item, before, f"{path}[{index}]")
    return errors


def _final(field: Field, value: Any, old: Any, path: str, *, updating: bool) -> Iterator[FieldError]:
    """Yield the errors that end the validation of a field."""
    if field.immutable and updating:
        yield immutable(path)
    elif field.kept and updating and (old is None) != (value is None):
        yield invalid(path, None, "field cannot be set or cleared once created")
    elif field.max_items and len(value or ()) > field.max_items:
        yield too_many(path, len(value), field.max_items)
    elif field.named and updating:
        new_names, old_names = ([item.get("name") for item in items or ()] for items in (value, old))
        for index, name in enumerate(new_names):
            if name not in old_names:
                yield forbidden(f"{path}[{index}]", "item may not be added")
        for name in old_names:
            if name not in new_names:
                yield forbidden(path, "item may not be removed")
    elif field.required and value in (None, "", [], 0) and value is not False:
        yield required(path)


def _further(field: Field, value: Any, path: str) -> Iterator[FieldError]:
    if field.named:
        listed = [item.get("name") for item in value or ()]
        for index, name in enumerate(listed):
            if name in listed[:index]:
                yield duplicate(f"{path}[{index}]", value[index])
    if field.form:
        yield from metadata.problems(path, value or "", field.form)
    if field.least is not None and (value or 0) < field.least:
        yield invalid(path, value, f"must be greater than or equal to {field.least}")
    if field.most is not None and (value or 0) > field.most:
        yield invalid(path, value, f"must be less than or equal to {field.most}")
    if field.values and value is not None and value not in field.values:
        yield not_supported(path, value, sorted(field.values))


COMPOSITES = "compositePodGroupTemplates"
MAX_TEMPLATES = 8
MAX_DEPTH = 4
MAX_PRIORITY = 1_000_000_000

BASIC_OR_GANG = ("basic", "gang")
_LABEL = Field(required=True, form=metadata.DNS_LABEL)
_SUBDOMAIN = Field(required=True, form=metadata.DNS_SUBDOMAIN)
_SEGMENT = Field(required=True, form=metadata.PATH_SEGMENT)
_TOPOLOGY = Struct({"key": Field(required=True, form=metadata.LABEL_KEY)})
CONSTRAINTS = Struct({"topology": Field(max_items=1, optional=True, struct=_TOPOLOGY)})
DISRUPTION = Struct({}, ("single", "all"))
_CONTROLLER_REF = Struct(
    {"apiGroup": Field(optional=True, form=metadata.DNS_SUBDOMAIN), "kind": _SEGMENT, "name": _SEGMENT}
)
_CONTROLLER = Field(immutable=True, optional=True, struct=_CONTROLLER_REF)
_WORKLOAD_REF = Struct({"workloadName": _SUBDOMAIN, "templateName": _LABEL})
_PARENT = Field(immutable=True, optional=True, form=metadata.DNS_SUBDOMAIN)


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
        "priorityClassName": Field(immutable=True, optional=True, form=metadata.DNS_SUBDOMAIN),
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
