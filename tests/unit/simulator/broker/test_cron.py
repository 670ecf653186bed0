"""The times at which a PingSource fires, and its events."""

from __future__ import annotations

import queue
from datetime import UTC, datetime

import pytest

from muster.kustomize import UnsupportedManifestError
from muster.simulator.broker import CloudEvent, PingSource, PingTimer, RefusedError, Wiring
from muster.simulator.broker.cron import Schedule

SECONDS = 5


@pytest.mark.parametrize(
    ("schedule", "after", "fires"),
    [
        pytest.param("* * * * *", "2026-11-21 08:00:30", "2026-11-21 08:01:00", id="every minute"),
        pytest.param("* * * * *", "2026-11-21 08:01:00", "2026-11-21 08:02:00", id="never twice at one time"),
        pytest.param(
            "*/15 * * * *", "2026-11-21 08:46:00", "2026-11-21 09:00:00", id="every quarter of an hour"
        ),
        pytest.param("30 8-9 * * *", "2026-11-21 09:30:00", "2026-11-22 08:30:00", id="hours of a day"),
        pytest.param("0 0 1,15 * *", "2026-11-21 00:00:00", "2026-12-01 00:00:00", id="days of a month"),
        pytest.param("0 6 * * 1-5", "2026-11-21 00:00:00", "2026-11-23 06:00:00", id="not on a weekend"),
        pytest.param("0 0 29 2 *", "2026-11-21 00:00:00", "2028-02-29 00:00:00", id="a leap day"),
        pytest.param("0 0 25 * 0", "2026-11-21 00:00:00", "2026-11-22 00:00:00", id="a day or a weekday"),
        pytest.param(
            "10/20 * * * *", "2026-11-21 08:11:00", "2026-11-21 08:30:00", id="from a minute in steps"
        ),
        pytest.param(
            "0 0 * * 5/1",
            "2026-11-21 00:00:00",
            "2026-11-27 00:00:00",
            id="from a weekday in steps to Saturday",
        ),
        pytest.param("0 0 * mar mon-FRI", "2026-11-21 00:00:00", "2027-03-01 00:00:00", id="names"),
        pytest.param("@every 30s", "2026-11-21 08:00:10", "2026-11-21 08:00:40", id="every so many seconds"),
    ],
)
def test_schedules(schedule: str, after: str, fires: str) -> None:
    """The first time after a moment."""
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    assert Schedule.parse(schedule).next_after(moment) == datetime.fromisoformat(fires).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("timezone", "fires"),
    [
        pytest.param("", "2026-11-22 06:00:00", id="UTC unless the source has a time zone"),
        pytest.param("Europe/Berlin", "2026-11-22 05:00:00", id="an hour earlier east of Greenwich"),
        pytest.param("America/New_York", "2026-11-21 11:00:00", id="five hours later west of it"),
    ],
)
def test_timezones(timezone: str, fires: str) -> None:
    """`spec.timezone` moves six o'clock; the answer keeps the time zone of the moment."""
    after = Schedule.parse("0 6 * * *", timezone).next_after(datetime(2026, 11, 21, 8, tzinfo=UTC))
    assert (after.replace(tzinfo=None), after.tzinfo) == (datetime.fromisoformat(fires), UTC)


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        pytest.param("* * * *", "five fields", id="four fields"),
        pytest.param("0 * * * * *", "five fields", id="seconds"),
        pytest.param("60 * * * *", "minute", id="a minute too many"),
        pytest.param("*/0 * * * *", "minute", id="steps of nothing"),
        pytest.param("5-5/10 * * * *", "minute", id="steps in a range of a single minute"),
        pytest.param("* 5-1 * * *", "hour", id="a range backwards"),
        pytest.param("* * L * *", "day-of-month", id="the last day"),
        pytest.param("* * 1,LW * *", "day-of-month", id="the last working day"),
        pytest.param("0 0 30 2 *", "day-of-month", id="30 February never comes"),
        pytest.param("* * * JANUARY *", "month", id="a month in full"),
        pytest.param("* * * * 7", "day-of-week", id="a second number for Sunday"),
        pytest.param("* * * * 5-7/2", "day-of-week", id="a range to that number"),
        pytest.param("* * * * 5L", "day-of-week", id="the last Friday"),
        pytest.param("* * * * MON#2", "day-of-week", id="the second Monday"),
        pytest.param("9" * 5_000 + " * * * *", "schedule", id="a number of many digits"),
        pytest.param("@hourly", "@hourly", id="a word for a schedule"),
        pytest.param("@every soon", "@every soon", id="every soon"),
        pytest.param("@every 0s", "@every 0s", id="without end"),
    ],
)
def test_unsupported_schedules_are_refused(schedule: str, field: str) -> None:
    """A schedule that is misread would sweep never or always; the field is named."""
    with pytest.raises(UnsupportedManifestError, match=field):
        _ping(schedule=schedule)


def test_months_with_an_l_and_steps_of_seven_are_read() -> None:
    """L and 7 are refused as days alone."""
    moment = datetime(2026, 11, 21, tzinfo=UTC)
    july = Schedule.parse("0 0 7 JUL */7").next_after(moment)
    assert (july.month, july.day, july.isoweekday()) == (7, 7, 7)


@pytest.mark.parametrize("timezone", ["Mars/Olympus", "../zone", "Europe"])
def test_an_unknown_timezone_is_refused(timezone: str) -> None:
    """The sweeps would come at the wrong hour."""
    with pytest.raises(UnsupportedManifestError, match="PingSource sweep: timezone"):
        _ping(timezone=timezone)


def _ping(**spec: object) -> PingSource:
    metadata = {"name": "sweep", "namespace": "muster-system"}
    manifests = [
        {"kind": "Broker", "metadata": {"name": "muster", "namespace": "muster-system"}},
        {"kind": "PingSource", "metadata": metadata, "spec": {"sink": {"ref": {"name": "muster"}}, **spec}},
    ]
    (ping,) = Wiring.from_manifests(manifests).pings
    return ping


def test_a_ping_event_equals_knatives() -> None:
    """Type and source are the adapter's; without data there is no content type either."""
    event = _ping().event("1", "2026-11-21T08:00:00Z")
    assert event.attributes == {
        "specversion": "1.0",
        "id": "1",
        "source": "/apis/v1/namespaces/muster-system/pingsources/sweep",
        "type": "dev.knative.sources.ping",
        "time": "2026-11-21T08:00:00Z",
    }
    assert event.data == b""


def test_a_ping_carries_its_data_and_overrides() -> None:
    """As its YAML says."""
    overrides = {"extensions": {"cluster": "east"}}
    event = _ping(data="{}", contentType="application/json", ceOverrides=overrides).event("1", "now")
    assert (event.data, event["datacontenttype"], event["cluster"]) == (b"{}", "application/json", "east")


def test_the_timer_fires_again_and_again_until_stopped() -> None:
    """Each tick has its own id; a broker that refuses one does not end the timer."""
    events: queue.Queue[CloudEvent] = queue.Queue()

    def publish(event: CloudEvent) -> None:
        events.put(event)
        raise RefusedError(503, "full")

    timer = PingTimer([_ping(schedule="@every 0.01s")], publish)
    timer.start()
    first, second = events.get(timeout=SECONDS), events.get(timeout=SECONDS)
    timer.stop()
    assert first["type"] == "dev.knative.sources.ping"
    assert first["id"] != second["id"]
    seen = events.qsize()
    assert not timer._thread.is_alive()
    assert events.qsize() == seen
