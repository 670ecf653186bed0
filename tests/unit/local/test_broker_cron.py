"""When a PingSource fires, and what it says."""

from __future__ import annotations

import queue
from datetime import UTC, datetime

import pytest

from muster.manifests import UnsupportedManifestError
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
        pytest.param("@every 30s", "2026-11-21 08:00:10", "2026-11-21 08:00:40", id="every so many seconds"),
    ],
)
def test_schedules(schedule: str, after: str, fires: str) -> None:
    """The first time after a moment."""
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    assert Schedule.parse(schedule).next_after(moment) == datetime.fromisoformat(fires).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "schedule",
    ["* * * *", "60 * * * *", "* * * JAN *", "@hourly", "*/0 * * * *", "5-1 * * * *", "@every soon"],
)
def test_what_is_not_read_is_refused(schedule: str) -> None:
    """A schedule that is misread would sweep never or always."""
    with pytest.raises((UnsupportedManifestError, ValueError)):
        Schedule.parse(schedule)


def test_a_schedule_that_never_comes_is_an_error() -> None:
    """30 February is well spelled and never there."""
    with pytest.raises(UnsupportedManifestError, match="never comes"):
        Schedule.parse("0 0 30 2 *").next_after(datetime(2026, 11, 21, tzinfo=UTC))


def _ping(**spec: object) -> PingSource:
    metadata = {"name": "sweep", "namespace": "muster-system"}
    manifests = [
        {"kind": "Broker", "metadata": {"name": "muster", "namespace": "muster-system"}},
        {"kind": "PingSource", "metadata": metadata, "spec": {"sink": {"ref": {"name": "muster"}}, **spec}},
    ]
    (ping,) = Wiring.from_manifests(manifests).pings
    return ping


def test_a_ping_says_what_knatives_says() -> None:
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
