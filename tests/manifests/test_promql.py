"""Prometheus would load the alerts and run the dashboard: a parser of its language takes each expression."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.manifests.test_observability import EXPRESSIONS

# The parser comes from the package index; nothing else needs it.
pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

PARSER = "promql-parser==0.12.0"
PROGRAM = """
import json, sys
from promql_parser import parse
def refusal(expression):
    try:
        parse(expression)
    except ValueError as error:
        return str(error)
print(json.dumps([refusal(one) for one in json.load(sys.stdin)]))
"""

Refusals = Callable[[list[str]], list[str | None]]


@pytest.fixture(name="refusals", scope="module")
def _refusals(tmp_path_factory: pytest.TempPathFactory) -> Refusals:
    """What the parser has against each of some expressions; None of those it takes."""
    folder = tmp_path_factory.mktemp("parser")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--only-binary=:all:", "--target", str(folder)]
    subprocess.run([*pip, PARSER], check=True, capture_output=True)

    def ask(expressions: list[str]) -> list[str | None]:
        program = [sys.executable, "-c", PROGRAM]
        told = subprocess.run(
            program, input=json.dumps(expressions), cwd=folder, check=True, capture_output=True, text=True
        )
        found: list[str | None] = json.loads(told.stdout)
        return found

    return ask


def test_every_expression_is_promql(refusals: Refusals) -> None:
    """Functions with the arguments that they take, and every bracket closed."""
    expressions = [_as_grafana_sends_it(str(one.values[0])) for one in EXPRESSIONS]
    refused = zip(expressions, refusals(expressions), strict=True)
    assert [pair for pair in refused if pair[1]] == []


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("rate(muster_events_total)", id="a rate of an instant"),
        pytest.param("sum by (function (muster_events_total)", id="a bracket that stays open"),
        pytest.param("histogram_quantile(0.99)", id="an argument that is missing"),
    ],
)
def test_what_is_no_promql_is_seen(refusals: Refusals, expression: str) -> None:
    """The check would be worth nothing otherwise."""
    assert all(refusals([expression]))


def _as_grafana_sends_it(expression: str) -> str:
    """With lengths of time where the dashboard leaves them to Grafana."""
    return re.sub(r"\$__\w+", "5m", expression)
