"""CEL expressions of admission policies: compiled and evaluated by `cel-expr-python`, the C++ implementation.

The library has no constructors of objects: `Object.spec{name: value}` becomes the map `{'name': value}`, so
names of types are not checked; other map literals of such an expression need quoted keys. `variables.name`
becomes the variable's expression in parentheses, which is what evaluating it when first needed comes to.

Not there: the function libraries that Kubernetes adds to CEL (quantity, url, ip, format, regex, lists, sets,
jsonpatch.escapeKey), `authorizer` and `params`. An expression that uses them fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext.ext_optional import ExtOptional

NAMES = ("object", "oldObject", "namespaceObject", "request")
"""What an expression may speak of, beside `variables`."""

_VARIABLE = re.compile(r"\bvariables\.(\w+)")
_CONSTRUCTOR = re.compile(r"\bObject(?:\.\w+)*\s*\{")
_FIELD = re.compile(r"([{,]\s*)(\w+)(?=\s*:)")


class ExpressionError(Exception):
    """An expression that cannot be compiled or that fails on an object."""


def activation(values: Mapping[str, Any]) -> Any:
    """Return the values of `NAMES` as the library has them; converting a pod takes longer than evaluating."""
    return _environment().Activation({name: values.get(name) for name in NAMES})


def with_variables(expression: str, variables: Mapping[str, str]) -> str:
    """Return an expression in which each variable is replaced by its own expression."""
    return _VARIABLE.sub(lambda found: f"({variables.get(found[1], found[0])})", expression)


def evaluated(expression: str, given: Any) -> Any:
    """Return the value of an expression without variables as JSON."""
    try:
        value = _compiled(expression).eval(given)
    except RuntimeError as error:  # the library's budget of iterations
        raise ExpressionError(str(error)) from None
    if value.type() == cel.Type.ERROR:
        raise ExpressionError(str(value.value()))
    return value.plain_value()


@cache
def _environment() -> Any:
    text, number = cel.Type.STRING, cel.Type.INT
    overloads = [
        cel.Overload(f"substring_{len(bounds)}", text, [text, *bounds], is_member=True, impl=_substring)
        for bounds in ([number], [number, number])
    ]
    functions = [cel.FunctionDecl("substring", overloads)]
    variables = dict.fromkeys(NAMES, cel.Type.DYN)
    return cel.NewEnv(variables=variables, extensions=[ExtOptional()], functions=functions)


def _substring(text: str, start: int, end: int | None = None) -> str:
    """Part of a text: the library's own function (0.1.3) fails where the end is the length of the text."""
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise ValueError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


@lru_cache
def _compiled(expression: str) -> Any:
    text, constructors = _CONSTRUCTOR.subn("{", expression)
    if constructors:
        text = _FIELD.sub(r"\1'\2'", text)
    try:
        # Without the checker, which wants both branches of `?:` to construct maps of one type.
        return _environment().compile(text, disable_check=bool(constructors))
    except RuntimeError as error:
        raise ExpressionError(f"compilation error: {error}") from None
