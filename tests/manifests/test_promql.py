"""Prometheus would load the alerts and run the dashboard: a parser of its language takes each expression."""

from __future__ import annotations

import re

import pytest
from promql_parser import parse

from tests.manifests.test_observability import EXPRESSIONS


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_is_promql(expression: str) -> None:
    """Functions with the arguments that they take, and every bracket closed."""
    parse(_as_grafana_sends_it(expression))


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("rate(muster_events_total)", id="a rate of an instant"),
        pytest.param("sum by (function (muster_events_total)", id="a bracket that stays open"),
        pytest.param("histogram_quantile(0.99)", id="an argument that is missing"),
    ],
)
def test_invalid_promql_is_rejected(expression: str) -> None:
    """The check would be worth nothing otherwise."""
    with pytest.raises(ValueError, match=r"."):
        parse(expression)


def _as_grafana_sends_it(expression: str) -> str:
    """With lengths of time where the dashboard leaves them to Grafana."""
    return re.sub(r"\$__\w+", "5m", expression)
