"""Retries and delays of the broker by DeliverySpec, with Knative's numbers."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from muster.kustomize import UnsupportedManifestError
from muster.simulator.broker.delivery import Delivery, destination, is_retried, seconds_of


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        pytest.param("exponential", [0.2, 0.4, 0.8, 1.6], id="exponential: delay times two to the n"),
        pytest.param(
            "linear", [0.0, 0.2, 0.4, 0.6], id="linear: delay times n, so the first retry is at once"
        ),
    ],
)
def test_waits(policy: str, waits: list[float]) -> None:
    """N counts from 0, as retries.go does."""
    delivery = Delivery.from_manifest({"retry": 4, "backoffPolicy": policy, "backoffDelay": "PT0.2S"})
    assert [delivery.wait_before_retry(number) for number in range(4)] == pytest.approx(waits)


def test_no_delivery_is_one_attempt() -> None:
    """Without a DeliverySpec nothing is tried again, waited for or kept."""
    assert Delivery.from_manifest({}) == Delivery(retry=0, policy="", delay=0.0, timeout=None, dead_letter="")
    assert Delivery(retry=3).wait_before_retry(2) == 0.0


@pytest.mark.parametrize("status", [0, 404, 408, 409, 429, 500, 501, 502, 503, 504, 599])
def test_comes_again(status: int) -> None:
    """No answer, four of the 4xx and every 5xx are tried again."""
    assert is_retried(status)


@pytest.mark.parametrize("status", [200, 202, 204, 301, 400, 401, 403, 410, 413, 415, 422, 425])
def test_does_not_come_again(status: int) -> None:
    """Everything else is the end: taken, or refused for good."""
    assert not is_retried(status)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("PT0.2S", 0.2, id="a fraction of a second"),
        pytest.param("PT10S", 10.0, id="seconds"),
        pytest.param("PT1M30S", 90.0, id="minutes and seconds"),
        pytest.param("P1DT1H", 90000.0, id="a day and an hour"),
        pytest.param("P2W", 1209600.0, id="weeks"),
        pytest.param("PT0,5S", 0.5, id="a comma for a point"),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """ISO 8601 durations of weeks or less."""
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "10s", "P1M", "P1Y", "PT-1S", "-PT1S", "1 day", "00:10", "PT1D", "P1DT1", "P367D"]
)
def test_broken_durations_are_refused(text: str) -> None:
    """A month has no length, and what is no duration is a mistake in the YAML."""
    with pytest.raises(UnsupportedManifestError):
        seconds_of(text)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"retryAfterMax": "PT1S"}, id="retryAfterMax is alpha, and Knative refuses it as well"),
        pytest.param({"format": "json"}, id="format is not understood"),
        pytest.param({"backoffPolicy": "sometimes"}, id="a policy that does not exist"),
    ],
)
def test_unsupported_fields_are_refused(spec: dict[str, Any]) -> None:
    """A delivery that cannot be kept is an error at the start."""
    with pytest.raises(UnsupportedManifestError):
        Delivery.from_manifest(spec)


def test_the_wait_before_a_late_retry_is_a_number() -> None:
    """A broker may be told to retry more often than a float has powers of two, and none waits for ages."""
    delivery = Delivery(retry=2_000, policy="exponential", delay=1.0)
    year = 366 * 24 * 3600
    assert delivery.wait_before_retry(1_100) == delivery.wait_before_retry(60) == year < threading.TIMEOUT_MAX


SERVICE = {"ref": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "muster"}}


@pytest.mark.parametrize(
    ("spec", "named"),
    [
        pytest.param(SERVICE, "muster", id="a Service"),
        pytest.param({**SERVICE, "uri": "/patch-pods"}, "muster/patch-pods", id="a path on it"),
        pytest.param({**SERVICE, "uri": "patch-pods/"}, "muster/patch-pods", id="slashes do not matter"),
        pytest.param({**SERVICE, "uri": "/"}, "muster", id="the root is no path"),
    ],
)
def test_a_destination_is_a_service_with_its_path(spec: dict[str, Any], named: str) -> None:
    """Two triggers of one Service go to different functions by the path alone."""
    assert destination(spec) == named


@pytest.mark.parametrize(
    "spec",
    [{}, {"uri": "http://elsewhere/"}, {**SERVICE, "uri": "http://elsewhere/"}, {**SERVICE, "uri": "//["}],
)
def test_an_address_of_its_own_is_no_destination(spec: dict[str, Any]) -> None:
    """The local broker has addresses of Services only."""
    with pytest.raises(UnsupportedManifestError):
        destination(spec)
