"""CEL expressions of admission policies: translated, compiled, evaluated.

The library (`cel-expr-python`, the C++ implementation) lacks three things that a translation of tokens adds:

- `Object.spec{name: value}` becomes `dyn({'$type': 'Object.spec', 'name': value})`. `constructed` takes the
  type names out again and refuses what the real server refuses (`CheckTypeNamesMatchFieldPathNames` in
  k8s.io/apiserver v0.37.1, `pkg/cel/mutation/dynamic/objects.go`).
- `variables.name` becomes the variable's expression in parentheses. CEL has no side effects, so that is
  what evaluating it when it is first needed comes to, errors included.
- `substring` becomes a function of ours: that of version 0.1.3 fails where the end is the length of the text.

Not there: the function libraries that Kubernetes adds to CEL (quantity, url, ip, format, regex, lists, sets,
jsonpatch.escapeKey), `authorizer` and `params`. An expression that uses them does not compile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

NAMES = ("object", "oldObject", "namespaceObject", "request")
"""What an expression may speak of, beside `variables`."""

TYPE = "$type"
"""The key under which a constructed object keeps the name of its type; no field can have such a name."""

SUBSTRING = "muster_substring"
CLOSING = "})"
BRACKETS = {"(": ")", "[": "]", "{": "}"}
_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*)
    | (?:[rR][bB]?|[bB][rR])(?:'{3}[\s\S]*?'{3}|"{3}[\s\S]*?"{3}|'[^'\n]*'|"[^"\n]*")
    | [bB]?(?:'{3}(?:\\.|[^\\])*?'{3}|"{3}(?:\\.|[^\\])*?"{3}|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
    | \w+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


class ExpressionError(Exception):
    """An expression that cannot be compiled or that fails on an object."""


class Activation:
    """The variables of expressions, converted once for each set of names that expressions use."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._converted: dict[frozenset[str], Any] = {}

    def of(self, names: frozenset[str]) -> Any:
        """Return the values of these names as the library has them; all others are null."""
        if names not in self._converted:
            values = {name: self._values.get(name) if name in names else None for name in NAMES}
            self._converted[names] = _environment().Activation(values)
        return self._converted[names]


def evaluated(expression: str, activation: Activation, variables: Mapping[str, str]) -> Any:
    """Return the value of an expression as JSON."""
    text = translated(expression, variables)
    try:
        value = _compiled(text).eval(activation.of(_names_in(text)))
    except RuntimeError as error:  # the library's budget of iterations
        raise ExpressionError(str(error)) from None
    if value.type() == cel.Type.ERROR:
        raise ExpressionError(str(value.value()))
    return value.plain_value()


@lru_cache
def _translated(expression: str, variables: tuple[tuple[str, str], ...]) -> str:
    return "".join(_Translation(expression, dict(variables)).parts())


def translated(expression: str, variables: Mapping[str, str]) -> str:
    """Return the expression without constructors and variables; ExpressionError if a variable is unknown."""
    return _translated(expression, tuple(variables.items()))


def constructed(value: Any, path: str = "Object") -> Any:
    """Return the apply configuration that an expression made, without the names of types."""
    if isinstance(value, list):
        return [constructed(item, path) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(TYPE, "" if path == "Object" else path) != path:
        raise ExpressionError(f"type mismatch: unexpected type name {value.get(TYPE)!r}, expected {path!r}")
    return {key: constructed(item, f"{path}.{key}") for key, item in value.items() if key != TYPE}


@cache
def _environment() -> Any:
    variables = dict.fromkeys(NAMES, cel.Type.DYN)
    text, number = cel.Type.STRING, cel.Type.INT
    substring = cel.FunctionDecl(
        SUBSTRING,
        [
            cel.Overload(f"{SUBSTRING}_{len(bounds)}", text, [text, *bounds], is_member=True, impl=_substring)
            for bounds in ([number], [number, number])
        ],
    )
    return cel.NewEnv(variables=variables, extensions=[ExtOptional(), ExtStrings()], functions=[substring])


def _substring(text: str, start: int, end: int | None = None) -> str:
    """Part of a text as `substring` of cel-go v0.26 returns it (`ext/strings.go`)."""
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise ValueError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


@lru_cache
def _names_in(text: str) -> frozenset[str]:
    """Return the names in an expression: converting a pod or Job takes longer than evaluating it."""
    return frozenset(name for name in NAMES if re.search(rf"\b{name}\b", text))


@lru_cache
def _compiled(expression: str) -> Any:
    try:
        return _environment().compile(expression)
    except RuntimeError as error:
        raise ExpressionError(f"compilation error: {error}") from None


class _Translation:
    """One pass over the tokens of an expression; space and comments go with the token they precede."""

    def __init__(self, expression: str, variables: Mapping[str, str]) -> None:
        self._tokens: list[str] = []
        self._spaces: list[str] = []
        self._variables = variables
        self._closing: list[str] = []
        space = ""
        for match in _TOKEN.finditer(expression):
            if match["space"]:
                space += match[0]
            else:
                self._tokens.append(match[0])
                self._spaces.append(space)
                space = ""

    def parts(self) -> Iterator[str]:
        """Yield the translated tokens, each after its space."""
        place = 0
        while place < len(self._tokens):
            yield self._spaces[place]
            text, selected = self._tokens[place], self._token(place - 1) == "."
            type_name = "" if selected else self._type_at(place)
            if type_name:
                place += 2 * type_name.count(".") + 1
                self._closing.append(CLOSING)
                yield f"dyn({{'{TYPE}': '{type_name}'"
                yield "" if self._token(place + 1) == "}" else ","
            elif text == "variables" and not selected and self._token(place + 1) == ".":
                place += 2
                yield f"({self._variable(self._token(place))})"
            elif text == "substring" and selected and self._token(place + 1) == "(":
                yield SUBSTRING
            elif self._is_field(place):
                yield f"'{text}'"
            else:
                yield self._bracket(text)
            place += 1

    def _token(self, place: int) -> str:
        return self._tokens[place] if 0 <= place < len(self._tokens) else ""

    def _type_at(self, place: int) -> str:
        """Return the name of the type that is constructed from here on; "" where none is."""
        if self._token(place) != "Object":
            return ""
        end = place + 1
        while self._token(end) == ".":
            end += 2
        return "".join(self._tokens[place:end]) if self._token(end) == "{" else ""

    def _variable(self, name: str) -> str:
        if name not in self._variables:
            raise ExpressionError(f"compilation error: undefined field '{name}'")
        return self._variables[name]

    def _is_field(self, place: int) -> bool:
        """Whether the token is the name of a field in the constructor around it."""
        inside = self._closing[-1:] == [CLOSING] and self._token(place).isidentifier()
        return inside and self._token(place + 1) == ":" and self._token(place - 1) in {"{", ",", "?"}

    def _bracket(self, text: str) -> str:
        if text in BRACKETS:
            self._closing.append(BRACKETS[text])
        elif text in BRACKETS.values() and self._closing:
            return self._closing.pop()
        return text
