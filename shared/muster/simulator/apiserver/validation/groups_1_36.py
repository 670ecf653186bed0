"""Validation of Workload and PodGroup of Kubernetes 1.36 (scheduling.k8s.io/v1alpha2).

Source (v1.36.3): `pkg/apis/scheduling/v1alpha2/zz_generated.validations.go`. Unlike in 1.37, the
spec of a Workload and the policy of a PodGroup with its minCount are immutable, and there are no composites.
"""

from __future__ import annotations

from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.status import FieldError
from muster.simulator.apiserver.validation.groups import (
    BASIC_OR_GANG,
    CONSTRAINTS,
    CONTROLLER_REF,
    DNS_LABEL,
    DNS_SUBDOMAIN,
    MAX_PRIORITY,
    MAX_TEMPLATES,
    optional_then,
)
from muster.simulator.apiserver.validation.rules import (
    Field,
    Struct,
    at_least,
    at_most,
    check,
    enum,
    immutable_value,
    max_items,
    optional,
    required_value,
    union,
    unique,
)

GANG = Struct({"minCount": Field((required_value, at_least(1)))})
POLICY = Struct({"basic": Field((optional,)), "gang": Field((optional,), lambda: GANG)}, (BASIC_OR_GANG,))
TEMPLATE_REF = Struct(
    {
        "workloadName": Field((required_value, DNS_SUBDOMAIN)),
        "podGroupTemplateName": Field((required_value, DNS_LABEL)),
    }
)
REFERENCE = Struct({"workload": Field((optional,), lambda: TEMPLATE_REF)}, (union("workload"),))

_DISRUPTION = enum("Pod", "PodGroup")

TEMPLATE = Struct(
    {
        "name": Field((required_value, DNS_LABEL)),
        "schedulingPolicy": Field((), lambda: POLICY, always=True),
        "schedulingConstraints": Field((optional,), lambda: CONSTRAINTS),
        "disruptionMode": Field((optional, _DISRUPTION)),
        "priorityClassName": Field((optional, DNS_SUBDOMAIN)),
        "priority": Field((at_most(MAX_PRIORITY),)),
    }
)
WORKLOAD = Struct(
    {
        "controllerRef": Field((immutable_value, optional), lambda: CONTROLLER_REF),
        "podGroupTemplates": Field(
            (immutable_value, max_items(MAX_TEMPLATES), required_value, unique("name")),
            lambda: TEMPLATE,
            key="name",
        ),
    }
)
POD_GROUP = Struct(
    {
        "podGroupTemplateRef": Field((immutable_value, optional), lambda: REFERENCE),
        "schedulingPolicy": Field((immutable_value,), lambda: POLICY, always=True),
        "schedulingConstraints": Field((optional_then(immutable_value),), lambda: CONSTRAINTS),
        "disruptionMode": Field((immutable_value, optional, _DISRUPTION)),
        "priorityClassName": Field((immutable_value, optional, DNS_SUBDOMAIN)),
        "priority": Field((immutable_value, at_most(MAX_PRIORITY))),
    }
)


def workload(new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of the spec of a Workload."""
    return check(WORKLOAD, new.get("spec") or {}, None if old is None else old.get("spec") or {}, "spec")


def pod_group(new: Object, old: Object | None) -> list[FieldError]:
    """Return the errors of the spec of a PodGroup."""
    return check(POD_GROUP, new.get("spec") or {}, None if old is None else old.get("spec") or {}, "spec")
