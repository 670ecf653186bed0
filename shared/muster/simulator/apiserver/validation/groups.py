"""Validation of Workload, PodGroup and CompositePodGroup of Kubernetes 1.37.

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
    enum,
    formatted,
    immutable_value,
    max_items,
    not_set_later,
    optional,
    required_value,
    same_items,
    union,
    unique,
)

MAX_TEMPLATES = 8
MAX_DEPTH = 4
MAX_PRIORITY = 1_000_000_000

DNS_LABEL = formatted(names.dns_label)
DNS_SUBDOMAIN = formatted(names.dns_subdomain)
PATH_SEGMENT = formatted(names.path_segment)
BASIC_OR_GANG = union("basic", "gang")

TOPOLOGY = Struct({"key": Field((required_value, formatted(names.label_key)))})
CONSTRAINTS = Struct({"topology": Field((max_items(1), optional), lambda: TOPOLOGY)})
DISRUPTION = Struct({}, (union("single", "all"),))
WORKLOAD_REF = Struct(
    {
        "workloadName": Field((required_value, DNS_SUBDOMAIN)),
        "templateName": Field((required_value, DNS_LABEL)),
    }
)
CONTROLLER_REF = Struct(
    {
        "apiGroup": Field((optional, DNS_SUBDOMAIN)),
        "kind": Field((required_value, PATH_SEGMENT)),
        "name": Field((required_value, PATH_SEGMENT)),
    }
)


def _policy(count_field: str) -> Struct:
    gang = Struct({count_field: Field((required_value, at_least(1)))})
    fields = {
        "basic": Field((immutable_value, optional)),
        "gang": Field((not_set_later, optional), lambda: gang),
    }
    return Struct(fields, (BASIC_OR_GANG,))


PG_POLICY = _policy("minCount")
CPG_POLICY = _policy("minGroupCount")


def _common_fields(*, constraints: Callable[[], Struct], disruption: Rule) -> dict[str, Field]:
    return {
        "schedulingConstraints": Field((optional_then(immutable_value),), constraints),
        "disruptionMode": Field((immutable_value, disruption), lambda: DISRUPTION),
        "priorityClassName": Field((immutable_value, optional, DNS_SUBDOMAIN)),
        "priority": Field((immutable_value, at_most(MAX_PRIORITY))),
        "preemptionPolicy": Field((immutable_value, optional, enum("PreemptLowerPriority", "Never"))),
    }


def optional_then(rule: Rule) -> Rule:
    """Return the rule, after which an unset value skips the remaining rules."""

    def optional_rule(value: Any, old: Any, path: str, updating: bool) -> tuple[list[FieldError], bool]:
        errors, stop = rule(value, old, path, updating)
        return errors, stop or value is None

    return optional_rule


def _templates(struct: Callable[[], Struct]) -> Field:
    rules = (max_items(MAX_TEMPLATES), same_items("name"), optional, unique("name"))
    return Field(rules, struct, key="name")


PG_TEMPLATE = Struct(
    {
        "name": Field((required_value, DNS_LABEL)),
        "schedulingPolicy": Field((), lambda: PG_POLICY, always=True),
        **_common_fields(constraints=lambda: CONSTRAINTS, disruption=optional),
    }
)
CPG_TEMPLATE: Struct = Struct(
    {
        "name": Field((required_value, DNS_LABEL)),
        "schedulingPolicy": Field((), lambda: CPG_POLICY, always=True),
        **_common_fields(constraints=lambda: CONSTRAINTS, disruption=optional),
        "podGroupTemplates": _templates(lambda: PG_TEMPLATE),
        "compositePodGroupTemplates": _templates(lambda: CPG_TEMPLATE),
    }
)
WORKLOAD = Struct(
    {
        "controllerRef": Field((immutable_value, optional), lambda: CONTROLLER_REF),
        "podGroupTemplates": _templates(lambda: PG_TEMPLATE),
        "compositePodGroupTemplates": _templates(lambda: CPG_TEMPLATE),
    },
    (union("podGroupTemplates", "compositePodGroupTemplates"),),
)
POD_GROUP = Struct(
    {
        "parentCompositePodGroupName": Field(
            (immutable_value, optional_then(immutable_value), DNS_SUBDOMAIN)
        ),
        "workloadRef": Field((immutable_value, optional), lambda: WORKLOAD_REF),
        "schedulingPolicy": Field((), lambda: PG_POLICY, always=True),
        **_common_fields(constraints=lambda: CONSTRAINTS, disruption=required_value),
    }
)
COMPOSITE_POD_GROUP = Struct(
    {
        "parentCompositePodGroupName": Field(
            (immutable_value, optional_then(immutable_value), DNS_SUBDOMAIN)
        ),
        "workloadRef": Field((immutable_value, required_value), lambda: WORKLOAD_REF),
        "schedulingPolicy": Field((immutable_value,), lambda: CPG_POLICY, always=True),
        **_common_fields(constraints=lambda: CONSTRAINTS, disruption=required_value),
    }
)


def workload(new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of the spec of a Workload."""
    spec = new.get("spec") or {}
    errors = _unique_names(spec) + _depth(spec) + _same_priority(spec)
    for index, template in enumerate(spec.get("compositePodGroupTemplates") or []):
        errors += _has_child(template, f"spec.compositePodGroupTemplates[{index}]")
    return errors + check(WORKLOAD, spec, None if old is None else old.get("spec") or {}, "spec")


def pod_group(new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of the spec of a PodGroup."""
    spec = new.get("spec") or {}
    errors: list[FieldError] = []
    if old is None and spec.get("parentCompositePodGroupName") is not None and not spec.get("workloadRef"):
        errors.append(required("spec.workloadRef", "must be set when parentCompositePodGroupName is set"))
    return errors + check(POD_GROUP, spec, None if old is None else old.get("spec") or {}, "spec")


def composite_pod_group(new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of the spec of a CompositePodGroup."""
    old_spec = None if old is None else old.get("spec") or {}
    return check(COMPOSITE_POD_GROUP, new.get("spec") or {}, old_spec, "spec")


def group_status(new: Object) -> list[FieldError]:
    """Return the errors of the status of a PodGroup or CompositePodGroup."""
    return check_conditions((new.get("status") or {}).get("conditions") or [], "status.conditions")


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
