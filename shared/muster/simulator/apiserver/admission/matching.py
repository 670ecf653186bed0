"""Parts of both kinds of admission policies: which match a request, and the variables of expressions.

Sources (k8s.io/apiserver v0.37.1, `pkg/admission/plugin/policy`): `generic/policy_dispatcher.go`,
`matching/matching.go`; `pkg/cel/library` for the request that expressions see.

Not there: parameters, the match policy Equivalent, and requests for bindings, evictions and scales. On the
real server the order of the policies is chance; here it is that of their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.simulator.apiserver.admission.expressions import (
    Activation,
    ExpressionError,
    evaluated,
    translated,
)
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, name_of, namespace_of
from muster.simulator.apiserver.selectors import selects

EVERYTHING: Object = {}


@dataclass(frozen=True)
class Attributes:
    """A write on its way through admission."""

    kind: Kind
    namespace: Object | None
    operation: str = "CREATE"
    subresource: str = ""
    user: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


def bound(
    new: Object | None,
    old: Object | None,
    attributes: Attributes,
    policies: Iterable[Object],
    bindings: Iterable[Object],
) -> Iterator[tuple[Object, Object]]:
    """Yield each policy whose constraints select a write, with each of its bindings that does so too."""
    by_policy: dict[str, list[Object]] = {}
    for binding in bindings:
        by_policy.setdefault(str(at(binding, "spec", "policyName")), []).append(binding)
    for policy in policies:
        of_policy = by_policy.get(name_of(policy))
        if of_policy and _selected(at(policy, "spec", "matchConstraints"), new, old, attributes):
            for binding in of_policy:
                if _selected(at(binding, "spec", "matchResources"), new, old, attributes):
                    yield policy, binding


def activation(new: Object | None, old: Object | None, attributes: Attributes) -> Activation:
    """Return the variables of a policy's expressions, without empty fields of the request as in Go's JSON."""
    kind, obj = attributes.kind, new or old or {}
    request: Object = {
        "operation": attributes.operation,
        "kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "resource": {"group": kind.group, "version": kind.version, "resource": kind.plural},
        "userInfo": {"username": attributes.user},
        "options": dict(attributes.options),
    }
    texts = {"name": name_of(obj), "namespace": namespace_of(obj), "subResource": attributes.subresource}
    request |= {name: text for name, text in texts.items() if text}
    values = {"object": new, "oldObject": old, "namespaceObject": attributes.namespace, "request": request}
    return Activation(values)


def variables_of(spec: Object) -> dict[str, str]:
    """Return the expressions of the variables; each may speak of those before it."""
    variables: dict[str, str] = {}
    for variable in spec.get("variables") or []:
        variables[variable["name"]] = translated(variable["expression"], variables)
    return variables


def conditions_hold(spec: Object, given: Activation) -> bool:
    """Whether all match conditions hold; a false one makes it False even if others fail to evaluate."""
    failures: list[ExpressionError] = []
    for condition in spec.get("matchConditions") or []:
        try:
            if evaluated(condition["expression"], given, {}) is not True:
                return False
        except ExpressionError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return True


def _selected(constraints: Any, new: Object | None, old: Object | None, attributes: Attributes) -> bool:
    """Whether rules and selectors select the write; without any they select everything."""
    named = name_of(new or old or {})
    rules = at(constraints, "resourceRules")
    if rules is not None and not any(_rule_is_for(rule, named, attributes) for rule in rules):
        return False
    excluded = at(constraints, "excludeResourceRules") or ()
    if any(_rule_is_for(rule, named, attributes) for rule in excluded):
        return False
    of_object, of_namespace = at(constraints, "objectSelector"), at(constraints, "namespaceSelector")
    namespace_labels = at(attributes.namespace, "metadata", "labels") or {}
    return any(
        selects(EVERYTHING if of_object is None else of_object, at(obj, "metadata", "labels") or {})
        for obj in (new, old)
        if obj is not None
    ) and selects(EVERYTHING if of_namespace is None else of_namespace, namespace_labels)


def _rule_is_for(rule: Mapping[str, Any], name: str, attributes: Attributes) -> bool:
    named, kind = rule.get("resourceNames"), attributes.kind
    if named and name not in named:
        return False
    asked = {
        "operations": {"*", attributes.operation},
        "apiGroups": {"*", kind.group},
        "apiVersions": {"*", kind.version},
        "resources": _resources(kind.plural, attributes.subresource),
    }
    return all(not values.isdisjoint(rule.get(field) or ()) for field, values in asked.items())


def _resources(plural: str, subresource: str) -> set[str]:
    """Return all spellings in a rule that mean a resource or its subresource."""
    if not subresource:
        return {plural, "*", "*/*"}
    return {f"{plural}/{subresource}", f"{plural}/*", f"*/{subresource}", "*/*"}
