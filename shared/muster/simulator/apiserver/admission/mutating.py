"""MutatingAdmissionPolicies, evaluated: which act on a new object, in which turn, and what they make of it.

Sources (k8s.io/apiserver v0.37.1, `pkg/admission/plugin/policy`):
`mutating/{dispatcher,reinvocationcontext}.go`, `mutating/patch/smd.go`.

Not there: patches of type JSONPatch, updates and deletions, custom resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.simulator.apiserver.admission.expressions import (
    Activation,
    ExpressionError,
    constructed,
    evaluated,
)
from muster.simulator.apiserver.admission.matching import (
    Attributes,
    activation,
    bound,
    conditions_hold,
    variables_of,
)
from muster.simulator.apiserver.fields import defaults
from muster.simulator.apiserver.fields.decoding import Decoder
from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, copied, name_of
from muster.simulator.apiserver.patches.apply import granular, merged
from muster.simulator.apiserver.schemas import Schema
from muster.simulator.apiserver.status import ApiError, refused


@dataclass(frozen=True)
class Creation:
    """A new object on its way through admission."""

    kind: Kind
    gates: Gates
    namespace: Object | None
    user: str = ""

    @property
    def attributes(self) -> Attributes:
        """The creation as constraints and expressions see it."""
        return Attributes(self.kind, self.namespace, user=self.user)


def mutated(
    obj: Object, creation: Creation, policies: Iterable[Object], bindings: Iterable[Object]
) -> Object:
    """Return the object after all policies that act on it; the given one is left as it is."""
    turns = [_Turn(*pair) for pair in bound(obj, None, creation.attributes, policies, bindings)]
    invoked: list[_Turn] = []
    due: list[_Turn] = []
    for turn in turns:
        changed = turn.taken(obj, creation)
        if changed is None:
            continue
        if changed != obj:
            obj, due = changed, list(invoked)
        if turn.policy["spec"].get("reinvocationPolicy") == "IfNeeded":
            invoked.append(turn)
    for turn in due:
        obj = turn.taken(obj, creation) or obj
    return obj


@dataclass(frozen=True)
class _Turn:
    """One policy by one of its bindings."""

    policy: Object
    binding: Object

    def taken(self, obj: Object, creation: Creation) -> Object | None:
        """Return the object after this policy; None where a condition does not hold, or it fails and may."""
        spec, given = self.policy["spec"], activation(obj, None, creation.attributes)
        try:
            variables = variables_of(spec)
            if not conditions_hold(spec, given):
                return None
        except ExpressionError as error:
            self._failed(error, obj, creation)
            return None
        for mutation in spec.get("mutations") or []:
            try:
                patch = _patch(mutation, given, variables)
                obj = _applied(patch, obj, creation)
            except ExpressionError as error:
                self._failed(error, obj, creation)
            else:
                given = activation(obj, None, creation.attributes)
        return obj

    def _failed(self, error: ExpressionError, obj: Object, creation: Creation) -> None:
        if self.policy["spec"].get("failurePolicy") == "Ignore":
            return
        policy, binding, kind = name_of(self.policy), name_of(self.binding), creation.kind
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
    patch: Object = constructed(made)
    return patch


def _applied(patch: Object, obj: Object, creation: Creation) -> Object:
    """Return the object with an apply configuration merged into it, its defaults filled in."""
    kind = creation.kind
    _read(patch, kind, "failed to convert patch object to typed object")
    atomic = ", ".join(_atomics(patch, kind.schema, ""))
    if atomic:
        why = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs"
        raise ExpressionError(f"error applying patch: {why}: {atomic}")
    result = _read(copied(merged(obj, patch, kind.schema)), kind, "failed to merge patch")
    defaults.fill(kind, result, creation.gates)
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
