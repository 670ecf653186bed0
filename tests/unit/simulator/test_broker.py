"""What the contract cases of brokers do not reach: manifests, timers and the end of a broker."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest

from muster.simulator.broker import Answer, Broker, CloudEvent, Report, Wiring
from muster.simulator.overlays import UnsupportedManifestError

EVENT = CloudEvent({"specversion": "1.0", "id": "1", "source": "/test", "type": "dev.muster.sweep"})
AGAIN = {"retry": 5, "backoffPolicy": "linear", "backoffDelay": "PT1H"}
SINK = {"deadLetterSink": {"ref": {"name": "sink"}}}


def a_manifest(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """A manifest of Knative in Muster's namespace."""
    return {"kind": kind, "metadata": {"name": name, "namespace": "muster-system"}, "spec": spec}


def a_trigger(name: str, **spec: Any) -> dict[str, Any]:
    """A trigger whose subscriber has its name."""
    return a_manifest("Trigger", name, **{"broker": "muster", "subscriber": {"ref": {"name": name}}, **spec})


def a_wiring(*manifests: dict[str, Any]) -> Wiring:
    """The wiring of a broker without a delivery of its own, with these manifests."""
    return Wiring.from_manifests([a_manifest("Broker", "muster"), *manifests])


@pytest.mark.parametrize(
    "manifest",
    [
        a_trigger("a", filter={"attributes": {"kind": "Job"}}),
        a_trigger("a", filters=[{"cesql": "kind = 'Job'"}]),
        a_trigger("a", delivery={"timeout": "soon"}),
        a_trigger("a", subscriber={"uri": "http://example.com"}),
        a_manifest("PingSource", "a", sink={"ref": {"name": "muster"}}, schedule="soon"),
        a_manifest("Broker", "muster"),
    ],
)
def test_what_is_not_simulated_is_refused(manifest: dict[str, Any]) -> None:
    """With the name of the manifest, so that no story holds here and fails on a cluster."""
    with pytest.raises(UnsupportedManifestError, match=r"Trigger a: |PingSource a: |2 brokers"):
        a_wiring(manifest)


def test_a_broker_that_stops_makes_no_dead_letters() -> None:
    """An event that waits to be tried again was refused by nobody."""
    tried, reports = threading.Event(), list[Report]()

    def refuse(_headers: Mapping[str, str], _body: bytes, _timeout: float | None) -> Answer:
        tried.set()
        return Answer(503)

    broker = Broker(
        a_wiring(a_trigger("a", delivery=AGAIN | SINK)), {"a": refuse, "sink": refuse}, observe=reports.append
    )
    broker.start()
    broker.publish(EVENT)
    assert tried.wait(5)
    broker.stop()
    assert [(report.status, report.dead_letter) for report in reports] == [(503, None)]


def test_a_ping_comes_in_time() -> None:
    """At the times of its cron expression in its time zone, with its extensions."""
    manifest = a_manifest(
        "PingSource",
        "nightly",
        sink={"ref": {"name": "muster"}},
        schedule="30 8 * * MON-FRI",
        timezone="Europe/Berlin",
        ceOverrides={"extensions": {"cluster": "eu-1"}},
    )
    (ping,) = a_wiring(manifest).pings
    times = islice(ping.times(datetime(2026, 11, 20, 12, 0, tzinfo=UTC)), 2)
    assert [time.astimezone(UTC).isoformat() for time in times] == [
        "2026-11-23T07:30:00+00:00",
        "2026-11-24T07:30:00+00:00",
    ]
    event = ping.event()
    event.validate()
    assert (event["type"], event["cluster"]) == ("dev.knative.sources.ping", "eu-1")
