"""Dashboard and alerts query metrics that the functions have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from promql_parser import parse

from muster.data import EVENTING
from muster.events.parse import Sweep
from muster.policy.model import GangGivenUp, GangReport, GangStatus
from muster.policy.reasons import Reason
from muster.policy.status.group_status import WORST_FIRST
from muster.runtime.outcome import Outcome, OutcomeKind
from muster.runtime.telemetry.metrics import Metrics, exposition_of
from muster.simulator.overlays import load, of_kind
from tests.docs.commands import ROOT

FOLDER = EVENTING / "observability"
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
(ALERTS,) = of_kind(load(FOLDER), "PrometheusRule")
LISTED: list[dict[str, Any]] = [rule for group in ALERTS["spec"]["groups"] for rule in group["rules"]]
RULES = [rule for rule in LISTED if "alert" in rule]
RECORDED = {str(rule["record"]): str(rule["expr"]) for rule in LISTED if "record" in rule}

NAME = re.compile(r"\b(?:muster|process)_[a-z_]+\b")
SELECTOR = re.compile(r'(\w+)(?:=|!=|=~|!~)"([^"]*)"')
GROUPED = re.compile(r"by \(([^)]+)\)")


def expressions() -> Iterator[Any]:
    """Each expression, named after its panel or alert."""
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield pytest.param(target["expr"], id=f"panel {panel['title']} {target['refId']}")
    for rule in LISTED:
        yield pytest.param(rule["expr"], id=f"alert {rule['alert']}" if "alert" in rule else rule["record"])


def _written_out(expression: str) -> str:
    """Its words, with those of what is recorded in place of its name: no PromQL, but all that it asks for."""
    for name, recorded in RECORDED.items():
        expression = expression.replace(name, recorded)
    return expression


EXPRESSIONS = list(expressions())


ADDED = {"job", "instance", "namespace"}
"""Labels that Prometheus adds."""


def exported_samples() -> dict[str, set[str]]:
    """The labels of each sample that a function can have."""
    now = datetime(2026, 11, 21, tzinfo=UTC)
    metrics = Metrics("patch_pods", lambda: 0)
    metrics.answered(Sweep("1"), Outcome(OutcomeKind.DONE, Reason.SWEPT), 0.1, now)
    report = GangReport(1, (GangStatus(Reason.UNSCHEDULABLE, now),), Reason.INVALID_POLICY)
    metrics.swept_all(now, [("team-a", report)])
    metrics.milestone_reached(GangGivenUp(Reason.INVALID_POLICY))
    metrics.swept(Outcome(OutcomeKind.DONE, Reason.GATES_LIFTED))
    metrics.called("get", "pods", "ok")
    metrics.dead_letter_stored("500")
    families = text_string_to_metric_families(exposition_of([metrics]).decode())
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_metrics_and_labels_exist(expression: str) -> None:
    """A metric or label that no function has is an empty panel, and an alert that never fires."""
    parse(re.sub(r"\$__\w+", "5m", expression))
    expression = _written_out(expression)
    names = set(NAME.findall(expression))
    samples = exported_samples()
    assert names
    assert names <= set(samples)
    labels = set.union(*(samples[name] for name in names)) | ADDED
    asked = {label for label, _ in SELECTOR.findall(expression)}
    asked |= {label.strip() for group in GROUPED.findall(expression) for label in group.split(",")}
    assert asked <= labels


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_reasons_and_outcomes_exist(expression: str) -> None:
    """What is asked for is what outcomes say."""
    known = {"reason": set(map(str, Reason)), "outcome": set(map(str, OutcomeKind))}
    for label, values in SELECTOR.findall(expression):
        if label in known:
            assert set(values.split("|")) <= known[label]


def test_every_alert_says_what_is_wrong_what_to_do_and_where_to_read_on() -> None:
    """The anchor exists; a panel's title says what is counted, and no two are the same."""
    for rule in RULES:
        assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}, rule["alert"]
        page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    titles = [panel["title"] for panel in DASHBOARD["panels"]]
    assert [title for title in titles if " " not in title or titles.count(title) > 1] == []


def test_every_grouping_failure_raises_an_alert() -> None:
    """That of a cluster without the API is another one, because it concerns all jobs."""
    (gave_up,) = (rule for rule in RULES if rule["alert"] == "MusterGaveUp")
    assert re.findall(r'reason(\S+)"(\w+)"', gave_up["expr"]) == [("!=", "ApiNotServed")]
    (not_served,) = (rule for rule in RULES if rule["alert"] == "MusterApiNotServed")
    assert SELECTOR.findall(not_served["expr"]) == [("reason", "ApiNotServed")]


def test_every_reason_to_wait_is_in_one_alert() -> None:
    """The alert of gangs that need an engineer, or that of a full cluster."""
    exprs = [rule["expr"] for rule in RULES if "muster:longest_wait:seconds" in rule["expr"]]
    asked = [reason for expr in exprs for _, values in SELECTOR.findall(expr) for reason in values.split("|")]
    waiting = set(WORST_FIRST) - {Reason.SCHEDULED, Reason.API_NOT_SERVED}
    assert sorted(asked) == sorted(map(str, waiting))
