"""MutatingAdmissionPolicies and ValidatingAdmissionPolicies, evaluated.

Sources (k8s.io/apiserver v0.37.1, `pkg/admission/plugin/policy`): `generic/policy_dispatcher.go`,
`matching/matching.go`, `mutating/{dispatcher,reinvocationcontext}.go`, `mutating/patch/smd.go` and
`validating/{dispatcher,validator}.go`; `pkg/cel/library` for the request that expressions see.

Not there: parameters, the match policy Equivalent, patches of type JSONPatch, mutations of updates and custom
resources, message expressions, audit annotations, the actions Warn and Audit. On the real server the order of
the policies is chance; here it is that of their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.simulator.apiserver.admission import expressions
from muster.simulator.apiserver.admission.expressions import Activation, ExpressionError, evaluated
from muster.simulator.apiserver.fields import defaults
from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.kinds import Gates, Kind
from muster.simulator.apiserver.objects import Object, at, copied, name_of, namespace_of
from muster.simulator.apiserver.patches.apply import granular, merged
from muster.simulator.apiserver.refusals import ApiError, refused
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.selectors import selects

_EVERYTHING: Object = {}
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


def _activation(new: Object | None, old: Object | None, attributes: Attributes) -> Activation:
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


def _variables_of(spec: Object) -> dict[str, str]:
    """Return the expressions of the variables; each may speak of those before it."""
    variables: dict[str, str] = {}
    for variable in spec.get("variables") or []:
        variables[variable["name"]] = expressions.translated(variable["expression"], variables)
    return variables


def _conditions_hold(spec: Object, given: Activation) -> bool:
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
        selects(_EVERYTHING if of_object is None else of_object, at(obj, "metadata", "labels") or {})
        for obj in (new, old)
        if obj is not None
    ) and selects(_EVERYTHING if of_namespace is None else of_namespace, namespace_labels)


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


def mutated(
    obj: Object, attributes: Attributes, policies: Iterable[Object], bindings: Iterable[Object]
) -> Object:
    """Return the object after all policies that act on it; the given one is left as it is."""
    turns = [_Turn(*pair) for pair in _bound(obj, None, attributes, policies, bindings)]
    invoked: list[_Turn] = []
    due: list[_Turn] = []
    for turn in turns:
        changed = turn.taken(obj, attributes)
        if changed is None:
            continue
        if changed != obj:
            obj, due = changed, list(invoked)
        if turn.policy["spec"].get("reinvocationPolicy") == "IfNeeded":
            invoked.append(turn)
    for turn in due:
        obj = turn.taken(obj, attributes) or obj
    return obj


@dataclass(frozen=True)
class _Turn:
    """One policy by one of its bindings."""

    policy: Object
    binding: Object

    def taken(self, obj: Object, attributes: Attributes) -> Object | None:
        """Return the object after this policy; None where a condition does not hold, or it fails and may."""
        spec, given = self.policy["spec"], _activation(obj, None, attributes)
        try:
            variables = _variables_of(spec)
            if not _conditions_hold(spec, given):
                return None
        except ExpressionError as error:
            self._failed(error, obj, attributes)
            return None
        for mutation in spec.get("mutations") or []:
            try:
                patch = _patch(mutation, given, variables)
                obj = _applied(patch, obj, attributes)
            except ExpressionError as error:
                self._failed(error, obj, attributes)
            else:
                given = _activation(obj, None, attributes)
        return obj

    def _failed(self, error: ExpressionError, obj: Object, attributes: Attributes) -> None:
        if self.policy["spec"].get("failurePolicy") == "Ignore":
            return
        policy, binding, kind = name_of(self.policy), name_of(self.binding), attributes.kind
        failure = refused(kind.group, kind.plural, name_of(obj), "")
        message = f"policy '{policy}' with binding '{binding}' denied request: {error}"
        details = {**(failure.details or {}), "causes": [{"message": message}]}
        raise ApiError(failure.code, "Invalid", message, details) from error


def _patch(mutation: Object, given: Activation, variables: Mapping[str, str]) -> Object:
    """Return the apply configuration of a mutation."""
    expression = at(mutation, "applyConfiguration", "expression")
    if expression is None:
        raise ExpressionError(f"patches of type {mutation.get('patchType')} are not evaluated here")
    made = evaluated(str(expression), given, variables)
    if not isinstance(made, dict):
        raise ExpressionError("must evaluate to Object")
    patch: Object = expressions.constructed(made)
    return patch


def _applied(patch: Object, obj: Object, attributes: Attributes) -> Object:
    """Return the object with an apply configuration merged into it, its defaults filled in."""
    kind = attributes.kind
    _read(patch, kind, "failed to convert patch object to typed object")
    atomic = ", ".join(_atomics(patch, kind.schema, ""))
    if atomic:
        why = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs"
        raise ExpressionError(f"error applying patch: {why}: {atomic}")
    result = _read(copied(merged(obj, patch, kind.schema)), kind, "failed to merge patch")
    defaults.fill(kind, result, attributes.gates)
    return result


def _read(body: Object, kind: Kind, doing: str) -> Object:
    """Return the object with empty fields left out."""
    decoder = Decoder(kind, (kind.schema.get("properties") or {}).get("metadata") or {})
    try:
        read = decoder.read(body)
    except ApiError as error:
        raise ExpressionError(f"error applying patch: {doing}: {error.message}") from error
    if decoder.unknown:
        raise ExpressionError(
            f"error applying patch: {doing}: .{decoder.unknown[0]}: field not declared in schema"
        )
    return read


def _atomics(value: Any, schema: Schema, path: str) -> Iterator[str]:
    """Yield the paths of everything in a patch that can be set as a whole only."""
    if isinstance(value, dict):
        if not granular(schema, value):
            yield path
        properties = schema.get("properties") or {}
        for key, item in value.items():
            if key in properties:
                yield from _atomics(item, properties[key], f"{path}.{key}")
    elif isinstance(value, list):
        if not granular(schema, value):
            yield path
        for index, item in enumerate(value):
            yield from _atomics(item, schema.get("items") or {}, f"{path}[{index}]")


def check(
    new: Object | None,
    old: Object | None,
    attributes: Attributes,
    policies: Iterable[Object],
    bindings: Iterable[Object],
) -> None:
    """Evaluate the policies that select a write."""
    given: Activation | None = None
    for policy, binding in _bound(new, old, attributes, policies, bindings):
        if "Deny" not in (binding["spec"].get("validationActions") or ()):
            continue
        given = given or _activation(new, old, attributes)
        denied = _denial(policy["spec"], given)
        if denied is None:
            continue
        reason, message = denied
        where = f"ValidatingAdmissionPolicy '{name_of(policy)}' with binding '{name_of(binding)}'"
        kind, why = attributes.kind, f"{where} denied request: {message}"
        refusal = refused(kind.group, kind.plural, name_of(new or old or {}), why)
        details = {**(refusal.details or {}), "causes": [{"message": why}]}
        raise ApiError(_CODES.get(reason, 422), reason, refusal.message, details)


def _denial(spec: Object, given: Activation) -> tuple[str, str] | None:
    """Reason and message of the first validation that does not hold; None if the write is allowed."""
    forgiving = spec.get("failurePolicy") == "Ignore"
    try:
        if not _conditions_hold(spec, given):
            return None
        variables = _variables_of(spec)
    except ExpressionError as error:
        return None if forgiving else ("Invalid", str(error))
    for validation in spec.get("validations") or []:
        expression = validation["expression"]
        try:
            if evaluated(expression, given, variables) is True:
                continue
        except ExpressionError as error:
            if forgiving:
                continue
            return "Invalid", f"expression '{expression}' resulted in error: {error}"
        message = validation.get("message") or f"failed expression: {expression}"
        return validation.get("reason") or "Invalid", message
    return None
