"""CEL as policies are written in it: what the translation adds to the library, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from muster.simulator.apiserver.admission.expressions import (
    Activation,
    ExpressionError,
    constructed,
    evaluated,
    translated,
)

SEEN = Activation({"object": {"name": "abcdefgh", "spec": {"count": 3, "none": "Object{a: 1}"}}})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        pytest.param("object.?missing.orValue('x')", "x", id="optionals"),
        pytest.param("object.name.substring(0, 8)", "abcdefgh", id="substring up to the end"),
        pytest.param("object.name.substring(6)", "gh", id="substring from a place on"),
        pytest.param("'日本'.substring(1, 2)", "本", id="substring counts characters"),
        pytest.param("'abc\\n'.matches('^[a-z]*$')", False, id="the end is the end of the text"),
        pytest.param("7 / 2", 3, id="whole numbers"),
        pytest.param("'variables.x' + \"Object{}\"", "variables.xObject{}", id="texts stay as they are"),
        pytest.param(r"r'\d' + 'x'", r"\dx", id="raw texts"),
        pytest.param("'''a'b''' // Object{\n + 'c'", "a'bc", id="long texts and comments"),
        pytest.param("{'Object': 1}['Object']", 1, id="maps"),
        pytest.param("1.5e-1 < 1.0 && true", True, id="numbers"),
    ],
)
def test_an_expression_has_the_value_it_has_in_kubernetes(expression: str, value: Any) -> None:
    """In the words of the policies."""
    assert evaluated(expression, SEEN, {}) == value


@pytest.mark.parametrize(
    ("expression", "made"),
    [
        pytest.param("Object{}", {}, id="empty"),
        pytest.param("Object{spec: Object.spec{a: 1, b: 'b',}}", {"spec": {"a": 1, "b": "b"}}, id="nested"),
        pytest.param("Object{a: {'b': 'c'}}", {"a": {"b": "c"}}, id="a map inside"),
        pytest.param(
            "Object{?a: object.?missing, ?b: object.?name}", {"b": "abcdefgh"}, id="optional fields"
        ),
        pytest.param("Object{a: [Object.a{b: 1}, Object.a{}]}", {"a": [{"b": 1}, {}]}, id="a list"),
        pytest.param(
            "false ? Object{} : Object{a: true ? Object.a{b: 1} : Object.a{}}", {"a": {"b": 1}}, id="branches"
        ),
        pytest.param("Object{a: object.spec.count > 2 ? 'x' : 'y'}", {"a": "x"}, id="a choice inside"),
    ],
)
def test_objects_are_constructed(expression: str, made: Any) -> None:
    """Object and the types of its fields."""
    assert constructed(evaluated(expression, SEEN, {})) == made


@pytest.mark.parametrize("expression", ["Object.spec{}", "Object{spec: Object.status{}}", "{'a': 1}"])
def test_a_type_in_the_wrong_place_is_refused(expression: str) -> None:
    """The type of a field is named after the path to it, and the whole is an Object."""
    with pytest.raises(ExpressionError, match="type mismatch"):
        constructed(evaluated(expression, SEEN, {}))


@pytest.mark.parametrize(
    "expression",
    ["object.missing", "variables.missing", "1 +", "missing", "object.name.substring(3, 9)", "Object{a: 1"],
)
def test_a_failing_expression_raises(expression: str) -> None:
    """While it is compiled or evaluated."""
    with pytest.raises(ExpressionError):
        evaluated(expression, SEEN, {})


def test_an_expression_beyond_the_budget_raises() -> None:
    """The library stops it, with an error of another type than those of CEL."""
    expression = "true"
    for name in "abcdefg":
        expression = f"[0,1,2,3,4,5,6,7,8,9].all({name}, {expression})"
    with pytest.raises(ExpressionError, match="budget"):
        evaluated(expression, SEEN, {})


def test_variables_that_multiply_are_refused() -> None:
    """Thirty, each of which names the one before twice, would take a gigabyte."""
    doubled = {"v": "'x'" + 10_000 * " "}
    with pytest.raises(ExpressionError, match="more than 20000 characters"):
        translated("variables.v + variables.v", doubled)


def test_variables_may_use_those_before_them() -> None:
    """Each is in parentheses where it is used."""
    variables = {"sum": translated("1 + 2", {})}
    variables["twice"] = translated("variables.sum * 2", variables)
    assert evaluated("variables.twice", SEEN, variables) == 6
