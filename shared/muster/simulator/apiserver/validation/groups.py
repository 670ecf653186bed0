"""Workload, PodGroup and CompositePodGroup of Kubernetes 1.37.

Sources (v1.37.1): `pkg/apis/scheduling/{v1beta1,v1alpha3}/zz_generated.validations.go` for the structs below,
`pkg/apis/scheduling/validation/validation.go` for the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.status import FieldError, duplicate, invalid, required
from muster.simulator.apiserver.validation import names
from muster.simulator.apiserver.validation.metadata import check_conditions
from muster.simulator.apiserver.validation.rules import (
    Field,
    Rule,
    Struct,
    at_least,
    at_most,
    check,
    formatted,
    max_items,
    not_set_later,
    one_of,
    optional,
    required_value,
    same_items,
    unchanging,
    union,
    unique,
)

MAX_TEMPLATES = 8
MAX_CLAIMS = 4
MAX_DEPTH = 4
HIGHEST_PRIORITY = 1_000_000_000

SHORT = formatted(names.dns_label)
LONG = formatted(names.dns_subdomain)
SEGMENT = formatted(names.path_segment)
BASIC_OR_GANG = union("basic", "gang")

TOPOLOGY = Struct({"key": Field((required_value, formatted(names.label_key)))})
CONSTRAINTS = Struct({"topology": Field((max_items(1), optional), lambda: TOPOLOGY)})
DISRUPTION = Struct({}, (union("single", "all"),))
CLAIM = Struct(
    {
        "name": Field((required_value, SHORT)),
        "resourceClaimName": Field((optional, LONG)),
        "resourceClaimTemplateName": Field((optional, LONG)),
    },
    (union("resourceClaimName", "resourceClaimTemplateName"),),
)
WORKLOAD_REF = Struct(
    {"workloadName": Field((required_value, LONG)), "templateName": Field((required_value, SHORT))}
)
CONTROLLER_REF = Struct(
    {
        "apiGroup": Field((optional, LONG)),
        "kind": Field((required_value, SEGMENT)),
        "name": Field((required_value, SEGMENT)),
    }
)


def _policy(count: str) -> Struct:
    gang = Struct({count: Field((required_value, at_least(1)))})
    fields = {"basic": Field((unchanging, optional)), "gang": Field((not_set_later, optional), lambda: gang)}
    return Struct(fields, (BASIC_OR_GANG,))


PG_POLICY = _policy("minCount")
CPG_POLICY = _policy("minGroupCount")


def _settings(*, constraints: Callable[[], Struct], disruption: Rule) -> dict[str, Field]:
    return {
        "schedulingConstraints": Field((optional_then(unchanging),), constraints),
        "disruptionMode": Field((unchanging, disruption), lambda: DISRUPTION),
        "priorityClassName": Field((unchanging, optional, LONG)),
        "priority": Field((unchanging, at_most(HIGHEST_PRIORITY))),
        "preemptionPolicy": Field((unchanging, optional, one_of("PreemptLowerPriority", "Never"))),
    }


def optional_then(rule: Rule) -> Rule:
    """A rule that also holds for clearing the field, after which nothing else is judged."""

    def both(value: Any, old: Any, path: str, updating: bool) -> tuple[list[FieldError], bool]:
        errors, ends = rule(value, old, path, updating)
        return errors, ends or value is None

    return both


_CLAIMS = Field((unchanging, max_items(MAX_CLAIMS), optional, unique("name")), lambda: CLAIM, keys="name")


def _templates(inside: Callable[[], Struct]) -> Field:
    rules = (max_items(MAX_TEMPLATES), same_items("name"), optional, unique("name"))
    return Field(rules, inside, keys="name")


PG_TEMPLATE = Struct(
    {
        "name": Field((required_value, SHORT)),
        "schedulingPolicy": Field((), lambda: PG_POLICY, always=True),
        "resourceClaims": _CLAIMS,
        **_settings(constraints=lambda: CONSTRAINTS, disruption=optional),
    }
)
CPG_TEMPLATE: Struct = Struct(
    {
        "name": Field((required_value, SHORT)),
        "schedulingPolicy": Field((), lambda: CPG_POLICY, always=True),
        **_settings(constraints=lambda: CONSTRAINTS, disruption=optional),
        "podGroupTemplates": _templates(lambda: PG_TEMPLATE),
        "compositePodGroupTemplates": _templates(lambda: CPG_TEMPLATE),
    }
)
WORKLOAD = Struct(
    {
        "controllerRef": Field((unchanging, optional), lambda: CONTROLLER_REF),
        "podGroupTemplates": _templates(lambda: PG_TEMPLATE),
        "compositePodGroupTemplates": _templates(lambda: CPG_TEMPLATE),
    },
    (union("podGroupTemplates", "compositePodGroupTemplates"),),
)
POD_GROUP = Struct(
    {
        "parentCompositePodGroupName": Field((unchanging, optional_then(unchanging), LONG)),
        "workloadRef": Field((unchanging, optional), lambda: WORKLOAD_REF),
        "schedulingPolicy": Field((), lambda: PG_POLICY, always=True),
        "resourceClaims": _CLAIMS,
        **_settings(constraints=lambda: CONSTRAINTS, disruption=required_value),
    }
)
COMPOSITE_POD_GROUP = Struct(
    {
        "parentCompositePodGroupName": Field((unchanging, optional_then(unchanging), LONG)),
        "workloadRef": Field((unchanging, required_value), lambda: WORKLOAD_REF),
        "schedulingPolicy": Field((unchanging,), lambda: CPG_POLICY, always=True),
        **_settings(constraints=lambda: CONSTRAINTS, disruption=required_value),
    }
)


def workload(new: Object, old: Object | None) -> list[FieldError]:
    """Every broken rule of a Workload's spec."""
    spec = new.get("spec") or {}
    errors = _names_unique(spec) + _depth(spec) + _one_priority(spec)
    for index, template in enumerate(spec.get("compositePodGroupTemplates") or []):
        errors += _has_child(template, f"spec.compositePodGroupTemplates[{index}]")
    return errors + check(WORKLOAD, spec, None if old is None else old.get("spec") or {}, "spec")


def pod_group(new: Object, old: Object | None) -> list[FieldError]:
    """Every broken rule of a PodGroup's spec."""
    spec = new.get("spec") or {}
    errors: list[FieldError] = []
    if old is None and spec.get("parentCompositePodGroupName") is not None and not spec.get("workloadRef"):
        errors.append(required("spec.workloadRef", "must be set when parentCompositePodGroupName is set"))
    return errors + check(POD_GROUP, spec, None if old is None else old.get("spec") or {}, "spec")


def composite_pod_group(new: Object, old: Object | None) -> list[FieldError]:
    """Every broken rule of a CompositePodGroup's spec."""
    before = None if old is None else old.get("spec") or {}
    return check(COMPOSITE_POD_GROUP, new.get("spec") or {}, before, "spec")


def group_status(new: Object) -> list[FieldError]:
    """Every broken rule of the status of a PodGroup or CompositePodGroup."""
    status, spec = new.get("status") or {}, new.get("spec") or {}
    errors = check_conditions(status.get("conditions") or [], "status.conditions")
    claims = {claim.get("name") for claim in spec.get("resourceClaims") or []}
    for index, claim in enumerate(status.get("resourceClaimStatuses") or []):
        if claim.get("name") not in claims:
            path = f"status.resourceClaimStatuses[{index}].name"
            errors.append(
                invalid(path, claim.get("name"), "must match the name of an entry in `spec.resourceClaims`")
            )
    return errors


def _names_unique(spec: Object) -> list[FieldError]:
    """Names are unique in the whole tree; those of one list are judged by the list's own rule."""
    taken = {template.get("name") for template in spec.get("podGroupTemplates") or []}
    return _composite_names(spec.get("compositePodGroupTemplates") or [], "spec", taken)


def _composite_names(templates: list[Object], path: str, taken: set[Any]) -> list[FieldError]:
    errors = _taken(templates, f"{path}.compositePodGroupTemplates", taken)
    for index, template in enumerate(templates):
        where = f"{path}.compositePodGroupTemplates[{index}]"
        errors += _taken(template.get("podGroupTemplates") or [], f"{where}.podGroupTemplates", taken)
        errors += _composite_names(template.get("compositePodGroupTemplates") or [], where, taken)
    return errors


def _taken(templates: list[Object], path: str, taken: set[Any]) -> list[FieldError]:
    found = [template.get("name") for template in templates]
    errors = [duplicate(f"{path}[{i}].name", name) for i, name in enumerate(found) if name in taken]
    taken.update(found)
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


def _one_priority(spec: Object) -> list[FieldError]:
    flat = {_priority(template) for template in spec.get("podGroupTemplates") or []}
    if len(flat) > 1:
        return [invalid("spec", None, "detected multiple priority configurations")]
    tree = {_priority(node) for root in spec.get("compositePodGroupTemplates") or [] for node in _nodes(root)}
    if len(flat | tree) > 1:
        detail = "all priority and priorityClassName values must be identical, detected multiple values"
        return [invalid("spec", None, detail)]
    return []


def _priority(template: Object) -> tuple[str, Any]:
    return template.get("priorityClassName") or "", template.get("priority")


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
