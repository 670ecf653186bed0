"""ValidatingAdmissionPolicies, evaluated: whether a creation, an update or a deletion is refused.

Sources (k8s.io/apiserver v0.37.1, `pkg/admission/plugin/policy/validating`): `dispatcher.go`, `validator.go`.

Not there: message expressions, audit annotations, and the validation actions Warn and Audit.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.simulator.apiserver.admission.expressions import Activation, ExpressionError, evaluated
from muster.simulator.apiserver.admission.matching import (
    Attributes,
    activation,
    bound,
    conditions_hold,
    variables_of,
)
from muster.simulator.apiserver.objects import Object, name_of
from muster.simulator.apiserver.status import ApiError, refused

_CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}
"""The HTTP status of each reason that a validation may have."""


def check(
    new: Object | None,
    old: Object | None,
    attributes: Attributes,
    policies: Iterable[Object],
    bindings: Iterable[Object],
) -> None:
    """Evaluate the policies that select a write."""
    given: Activation | None = None
    for policy, binding in bound(new, old, attributes, policies, bindings):
        if "Deny" not in (binding["spec"].get("validationActions") or ()):
            continue
        given = given or activation(new, old, attributes)
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
        if not conditions_hold(spec, given):
            return None
        variables = variables_of(spec)
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
