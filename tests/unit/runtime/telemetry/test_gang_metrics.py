"""Metrics of gangs: gauges from whole rounds of sweeps, placements and gave-ups from writes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from muster.cluster import errors
from muster.cluster.execute import in_order
from muster.objects.meta import ObjectRef
from muster.policy.model import GangGivenUp, GangReport, GangsPlaced, Milestone, NoOp, Plan, WaitingGang
from muster.policy.reasons import Reason
from muster.runtime import sweep
from muster.runtime.handle import Handler
from muster.runtime.sharing.deadline_client import DeadlineExceeded
from muster.runtime.telemetry.metrics import exposition_of
from tests.unit.runtime.fakes import DONE, NOW, FakeCluster, a_handler, a_step, an_event

OWNERS = [ObjectRef("batch/v1", "Job", "team-a", f"job-{number}") for number in range(4)]
Samples = dict[tuple[str, ...], float]


def read(handler: Handler, name: str) -> Samples:
    """All samples of a metric: the values of its labels, without the function, and its own value."""
    families = text_string_to_metric_families(exposition_of([handler.metrics]).decode())
    return {
        tuple(value for label, value in sorted(sample.labels.items()) if label != "function"): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def handle(handler: Handler, number: int = 1, **change: str) -> int:
    """Handle one event; the status of the answer."""
    headers, body = an_event(id=str(number), **change)
    return handler.handle(headers, b"" if change else body).status


def sweep_once(handler: Handler, number: int = 1) -> None:
    """One sweep."""
    assert handle(handler, number, type="dev.muster.sweep") == 202


def waits(reason: str, seconds: float) -> GangReport:
    """One gang that has waited so many seconds for this reason."""
    return GangReport(waiting=(WaitingGang(reason, NOW - timedelta(seconds=seconds)),))


class ReportedOwners:
    """What a step reports of each owner, by name; an owner without a report is left alone."""

    def __init__(self, *reports: GangReport | None) -> None:
        self.reports = list(reports)
        self.deciding: Any = lambda _name: None

    def handler(self, **settings: Any) -> Handler:
        """A handler whose step reports these."""
        step = a_step(plan=self._plan, observe=lambda _cluster, subject: subject,
                      responsible_for=lambda _cluster: OWNERS[: len(self.reports)])  # fmt: skip
        return a_handler(step, **settings)

    def _plan(self, subject: ObjectRef, _now: datetime) -> NoOp:
        self.deciding(subject.name)
        return NoOp(Reason.UP_TO_DATE, gangs=self.reports[OWNERS.index(subject)])


def test_a_sweep_counts_all_gangs() -> None:
    """Placed ones, those that wait by reason with the oldest of each, and owners without a gang."""
    owners = ReportedOwners(
        GangReport(placed=3, waiting=waits("Unschedulable", 60).waiting),
        waits("Unschedulable", 90),
        GangReport(gave_up="InvalidPolicy"),
        None,
    )
    handler = owners.handler()
    assert read(handler, "muster_gangs_placed") == {}
    sweep_once(handler)
    assert read(handler, "muster_gangs_placed") == {(): 3}
    assert read(handler, "muster_gangs_waiting") == {("Unschedulable",): 2}
    since = {("Unschedulable",): NOW.timestamp() - 90}
    assert read(handler, "muster_gangs_waiting_since_timestamp_seconds") == since
    assert read(handler, "muster_owners_without_gang") == {("InvalidPolicy",): 1}


def test_a_reason_that_vanished_is_0() -> None:
    """Its time is gone, because nothing waits since then; with the last owner all is 0."""
    owners = ReportedOwners(waits("Unschedulable", 60), GangReport(gave_up="InvalidPolicy"))
    handler = owners.handler()
    sweep_once(handler)
    owners.reports = [GangReport(placed=1), waits("WaitingForPods", 5)]
    sweep_once(handler, 2)
    assert read(handler, "muster_gangs_waiting") == {("Unschedulable",): 0, ("WaitingForPods",): 1}
    since = read(handler, "muster_gangs_waiting_since_timestamp_seconds")
    assert set(since) == {("WaitingForPods",)}
    assert read(handler, "muster_owners_without_gang") == {("InvalidPolicy",): 0}
    owners.reports = []
    sweep_once(handler, 3)
    assert read(handler, "muster_gangs_placed") == {(): 0}
    assert set(read(handler, "muster_gangs_waiting").values()) == {0}


def test_values_change_when_a_round_is_whole() -> None:
    """A round of several sweeps has counted a part of the owners only; the former values stay until then."""
    owners = ReportedOwners(*[waits("Unschedulable", 60)] * 4)
    handler = owners.handler(sweep_limit=3)
    sweep_once(handler)
    assert read(handler, "muster_gangs_waiting") == {}
    sweep_once(handler, 2)
    assert read(handler, "muster_gangs_waiting") == {("Unschedulable",): 4}
    owners.reports = [GangReport(placed=1)] * 4
    sweep_once(handler, 3)
    assert read(handler, "muster_gangs_waiting") == {("Unschedulable",): 4}
    sweep_once(handler, 4)
    assert read(handler, "muster_gangs_waiting") == {("Unschedulable",): 0}
    assert read(handler, "muster_gangs_placed") == {(): 4}


def test_an_abandoned_round_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lists were too old, so the next sweep counts from the beginning."""
    owners = ReportedOwners(*[waits("Unschedulable", 60)] * 4)
    handler = owners.handler(sweep_limit=3)
    sweep_once(handler)
    monkeypatch.setattr(sweep, "ROUND_SECONDS", 0.0)
    sweep_once(handler, 2)
    assert read(handler, "muster_gangs_waiting") == {}


def test_an_owner_that_takes_long_is_counted_once() -> None:
    """It is put back once, and then examined by a sweep of its own."""
    owners = ReportedOwners(*[GangReport(placed=1)] * 3)
    late: list[str] = []

    def deciding(name: str) -> None:
        if name == "job-1" and not late:
            late.append(name)
            raise DeadlineExceeded("over")

    owners.deciding = deciding
    handler = owners.handler()
    for number in range(2):
        sweep_once(handler, number)
    assert read(handler, "muster_gangs_placed") == {(): 3}


def test_an_owner_whose_writes_take_several_turns_is_counted_once() -> None:
    """Its remaining writes follow after the other objects; its last turn counts."""
    turns: list[str] = []

    def plan(subject: ObjectRef, _now: datetime) -> Plan:
        turns.append(subject.name)
        reason = Reason.WRITE_LIMIT if turns == ["job-0"] else Reason.CONDITIONS_UPDATED
        return replace(DONE, reason=reason, gangs=GangReport(placed=1))

    step = a_step(plan=plan, observe=lambda _cluster, subject: subject,
                  responsible_for=lambda _cluster: OWNERS[:1])  # fmt: skip
    handler = a_handler(step)
    sweep_once(handler)
    assert len(turns) == 2
    assert read(handler, "muster_gangs_placed") == {(): 1}


def test_an_unknown_reason_is_counted_as_other() -> None:
    """A reason in an annotation of a tenant's is no label."""
    owners = ReportedOwners(waits("Mine", 60), waits("Yours", 90), GangReport(gave_up="x" * 300))
    handler = owners.handler()
    sweep_once(handler)
    assert read(handler, "muster_gangs_waiting") == {("other",): 2}
    since = {("other",): NOW.timestamp() - 90}
    assert read(handler, "muster_gangs_waiting_since_timestamp_seconds") == since
    assert read(handler, "muster_owners_without_gang") == {("other",): 1}


def test_a_step_without_reports_has_no_gauges() -> None:
    """Only emit_conditions knows how gangs stand."""
    handler = a_handler(a_step())
    sweep_once(handler)
    assert read(handler, "muster_gangs_placed") == read(handler, "muster_gangs_waiting") == {}


def with_milestones(*milestones: Milestone) -> Plan:
    """A plan of two writes, the second with these milestones."""
    first, second = DONE.actions
    other = replace(second.target, name="llama-1")
    return replace(DONE, actions=(first, replace(second, target=other, milestones=milestones)))


def writing(plan: Plan, cluster: FakeCluster | None = None) -> Handler:
    """A handler whose step makes this plan of every event."""
    return a_handler(a_step(plan=lambda *_: plan, execute=in_order), cluster)


def test_a_placement_is_observed() -> None:
    """By the kind of its owner, in the bucket of its seconds."""
    handler = writing(with_milestones(GangsPlaced("TrainJob", 45.0)))
    handle(handler)
    assert read(handler, "muster_gang_placement_seconds_count") == {("TrainJob",): 1}
    assert read(handler, "muster_gang_placement_seconds_sum") == {("TrainJob",): 45}
    buckets = read(handler, "muster_gang_placement_seconds_bucket")
    assert (buckets["TrainJob", "30.0"], buckets["TrainJob", "60.0"]) == (0, 1)


def test_a_gave_up_is_counted_by_its_reason() -> None:
    """In sweeps as for events; a word that Muster does not have is other."""
    handler = writing(with_milestones(GangGivenUp("InvalidPolicy"), GangGivenUp("Mine")))
    handle(handler)
    sweep_once(handler)
    assert read(handler, "muster_gave_up_total") == {("InvalidPolicy",): 2, ("other",): 2}


@pytest.mark.parametrize(
    "failure", [errors.Conflict("late", status=409), errors.Unavailable("away"), errors.Forbidden("no role")]
)
def test_a_write_that_failed_counts_nothing(failure: Exception) -> None:
    """Who wrote the condition in between has counted it; else the next delivery does."""
    handler = writing(with_milestones(GangGivenUp("InvalidPolicy")), FakeCluster(on_write=failure))
    handle(handler)
    assert read(handler, "muster_gave_up_total") == {}
