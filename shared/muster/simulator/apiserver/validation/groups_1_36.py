"""Workload and PodGroup of Kubernetes 1.36 (scheduling.k8s.io/v1alpha2), where they differ from 1.37.

Source (v1.36.3): `pkg/apis/scheduling/v1alpha2/zz_generated.validations.go`. All of a Workload but its
metadata is immutable there, and so is a PodGroup's policy, minCount included; composites do not exist.
"""

from __future__ import annotations

from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.status import FieldError
from muster.simulator.apiserver.validation.groups import (
    BASIC_OR_GANG,
    CLAIM,
    CONSTRAINTS,
    CONTROLLER_REF,
    HIGHEST_PRIORITY,
    LONG,
    MAX_CLAIMS,
    MAX_TEMPLATES,
    SHORT,
    optional_then,
)
from muster.simulator.apiserver.validation.rules import (
    Field,
    Struct,
    at_least,
    at_most,
    check,
    max_items,
    one_of,
    optional,
    required_value,
    unchanging,
    union,
    unique,
)

GANG = Struct({"minCount": Field((required_value, at_least(1)))})
POLICY = Struct({"basic": Field((optional,)), "gang": Field((optional,), lambda: GANG)}, (BASIC_OR_GANG,))
TEMPLATE_REF = Struct(
    {"workloadName": Field((required_value, LONG)), "podGroupTemplateName": Field((required_value, SHORT))}
)
REFERENCE = Struct({"workload": Field((optional,), lambda: TEMPLATE_REF)}, (union("workload"),))

_CLAIMS = Field((unchanging, max_items(MAX_CLAIMS), optional, unique("name")), lambda: CLAIM, keys="name")
_DISRUPTION = one_of("Pod", "PodGroup")

TEMPLATE = Struct(
    {
        "name": Field((required_value, SHORT)),
        "schedulingPolicy": Field((), lambda: POLICY, always=True),
        "schedulingConstraints": Field((optional,), lambda: CONSTRAINTS),
        "resourceClaims": _CLAIMS,
        "disruptionMode": Field((optional, _DISRUPTION)),
        "priorityClassName": Field((optional, LONG)),
        "priority": Field((at_most(HIGHEST_PRIORITY),)),
    }
)
WORKLOAD = Struct(
    {
        "controllerRef": Field((unchanging, optional), lambda: CONTROLLER_REF),
        "podGroupTemplates": Field(
            (unchanging, max_items(MAX_TEMPLATES), required_value, unique("name")),
            lambda: TEMPLATE,
            keys="name",
        ),
    }
)
POD_GROUP = Struct(
    {
        "podGroupTemplateRef": Field((unchanging, optional), lambda: REFERENCE),
        "schedulingPolicy": Field((unchanging,), lambda: POLICY, always=True),
        "schedulingConstraints": Field((optional_then(unchanging),), lambda: CONSTRAINTS),
        "resourceClaims": _CLAIMS,
        "disruptionMode": Field((unchanging, optional, _DISRUPTION)),
        "priorityClassName": Field((unchanging, optional, LONG)),
        "priority": Field((unchanging, at_most(HIGHEST_PRIORITY))),
    }
)


def workload(new: Object, old: Object | None) -> list[FieldError]:
    """Every broken rule of a Workload's spec."""
    return check(WORKLOAD, new.get("spec") or {}, None if old is None else old.get("spec") or {}, "spec")


def pod_group(new: Object, old: Object | None) -> list[FieldError]:
    """Every broken rule of a PodGroup's spec."""
    return check(POD_GROUP, new.get("spec") or {}, None if old is None else old.get("spec") or {}, "spec")
