"""MutatingAdmissionPolicies and ValidatingAdmissionPolicies, evaluated.

Sources (k8s.io/apiserver v0.37.1, `pkg/admission/plugin/policy`): `generic/policy_dispatcher.go`,
`matching/matching.go`, `mutating/{dispatcher,patch/smd}.go` and `validating/{dispatcher,validator}.go`;
`pkg/cel/library` for the request that expressions see.

Not there: parameters, excludeResourceRules, resourceNames, the match policy Equivalent, reinvocation, patches
of type JSONPatch, mutations of updates, message expressions, audit annotations, the
actions Warn and Audit. The order of the policies, chance on the real server, is that of their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.simulator.apiserver.admission.expressions import (
    ExpressionError,
    activation,
    evaluated,
    with_variables,
)
from muster.simulator.apiserver.fields import defaults
from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.kinds import Gates, Kind
from muster.simulator.apiserver.objects import Object, at, copied, name_of, namespace_of
from muster.simulator.apiserver.patches import merged
from muster.simulator.apiserver.refusals import ApiError, refused
from muster.simulator.apiserver.selectors import selects

_CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}
"""The HTTP status of each reason that a validation may have."""


@dataclass(frozen=True)
class Attributes:
    """A write on its way through admission."""

    kind: Kind
    namespace: Object | None
    operation: str = "CREATE"
    subresource: str = ""
    user: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    gates: Gates = field(default_factory=Gates)


def mutated(
    obj: Object, attributes: Attributes, policies: Iterable[Object], bindings: Iterable[Object]
) -> Object:
    """Return the object after all policies that act on it; the given one is left as it is."""
    for policy, binding in list(_bound(obj, None, attributes, policies, bindings)):
        try:
            obj = _after(policy["spec"], obj, attributes)
        except ExpressionError as error:
            if policy["spec"].get("failurePolicy") != "Ignore":
                raise _denied(policy, binding, "Invalid", str(error), obj, attributes) from error
    return obj


def check(
    new: Object | None,
    old: Object | None,
    attributes: Attributes,
    policies: Iterable[Object],
    bindings: Iterable[Object],
) -> None:
    """Evaluate the policies that select a write; ApiError if one of them denies it."""
    given = None
    for policy, binding in _bound(new, old, attributes, policies, bindings):
        if "Deny" in (binding["spec"].get("validationActions") or ()):
            given = given or _activation(new, old, attributes)
            denial = _denial(policy["spec"], given)
            if denial is not None:
                raise _denied(policy, binding, *denial, new or old or {}, attributes)


def _bound(
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


def _selected(constraints: Any, new: Object | None, old: Object | None, attributes: Attributes) -> bool:
    """Whether rules and selectors select the write; without any they select everything."""
    rules = at(constraints, "resourceRules")
    if rules is not None and not any(_is_of(rule, attributes) for rule in rules):
        return False
    of_object, of_namespace = at(constraints, "objectSelector"), at(constraints, "namespaceSelector")
    written = [at(obj, "metadata", "labels") or {} for obj in (new, old) if obj is not None]
    home = at(attributes.namespace, "metadata", "labels") or {}
    return any(selects(of_object or {}, labels) for labels in written) and selects(of_namespace or {}, home)


def _is_of(rule: Mapping[str, Any], attributes: Attributes) -> bool:
    kind, subresource = attributes.kind, attributes.subresource
    resources = {kind.plural, "*", "*/*"}
    if subresource:
        resources = {f"{kind.plural}/{subresource}", f"{kind.plural}/*", f"*/{subresource}", "*/*"}
    asked = {
        "operations": {"*", attributes.operation},
        "apiGroups": {"*", kind.group},
        "apiVersions": {"*", kind.version},
        "resources": resources,
    }
    return all(not values.isdisjoint(rule.get(field) or ()) for field, values in asked.items())


def _activation(new: Object | None, old: Object | None, attributes: Attributes) -> Any:
    """Return what a policy's expressions speak of, without empty fields of the request as in Go's JSON."""
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
    return activation(
        {"object": new, "oldObject": old, "namespaceObject": attributes.namespace, "request": request}
    )


def _variables_of(spec: Object) -> dict[str, str]:
    """Return the expressions of the variables; each may speak of those before it."""
    variables: dict[str, str] = {}
    for variable in spec.get("variables") or []:
        variables[variable["name"]] = with_variables(variable["expression"], variables)
    return variables


def _conditions_hold(spec: Object, given: Any) -> bool:
    """Whether all match conditions hold; a false one makes it False even if others fail to evaluate."""
    failures: list[ExpressionError] = []
    for condition in spec.get("matchConditions") or []:
        try:
            if evaluated(condition["expression"], given) is not True:
                return False
        except ExpressionError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return True


def _after(spec: Object, obj: Object, attributes: Attributes) -> Object:
    """Return the object after the mutations of a policy, with defaults and without empty fields."""
    kind = attributes.kind
    given = _activation(obj, None, attributes)
    if not _conditions_hold(spec, given):
        return obj
    variables = _variables_of(spec)
    for mutation in spec.get("mutations") or []:
        expression = at(mutation, "applyConfiguration", "expression")
        if expression is None:
            raise ExpressionError(f"patches of type {mutation.get('patchType')} are not evaluated here")
        patch = evaluated(with_variables(expression, variables), given)
        decoder = Decoder(kind, (kind.schema.get("properties") or {}).get("metadata") or {})
        try:
            obj = decoder.read(copied(merged(obj, patch, kind.schema)))
        except ApiError as error:
            raise ExpressionError(f"error applying patch: {error.message}") from error
        if decoder.unknown:
            raise ExpressionError(
                f"error applying patch: .{decoder.unknown[0]}: field not declared in schema"
            )
        defaults.fill(kind, obj, attributes.gates)
        given = _activation(obj, None, attributes)
    return obj


def _denial(spec: Object, given: Any) -> tuple[str, str] | None:
    """Reason and message of the first validation that does not hold; None if the write is allowed."""
    try:
        if not _conditions_hold(spec, given):
            return None
        variables = _variables_of(spec)
        for validation in spec.get("validations") or []:
            expression = validation["expression"]
            if evaluated(with_variables(expression, variables), given) is not True:
                message = validation.get("message") or f"failed expression: {expression}"
                return validation.get("reason") or "Invalid", message
    except ExpressionError as error:
        return None if spec.get("failurePolicy") == "Ignore" else ("Invalid", str(error))
    return None


def _denied(
    policy: Object, binding: Object, reason: str, message: str, obj: Object, attributes: Attributes
) -> ApiError:
    kind = attributes.kind
    where = f"{policy['kind']} '{name_of(policy)}' with binding '{name_of(binding)}'"
    why = f"{where} denied request: {message}"
    refusal = refused(kind.group, kind.plural, name_of(obj), why)
    details = {**(refusal.details or {}), "causes": [{"message": why}]}
    return ApiError(_CODES.get(reason, 422), reason, refusal.message, details)
