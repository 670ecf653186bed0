"""Recorded API calls are aimed at another gang by replacing what identifies the first."""

from __future__ import annotations

import pytest

from bench.calls import Call, aimed

RECORDED = {
    "name": "gang-001",
    "pod": "gang-001-0",
    "uid": "5d0b4a52-0001",
    "short": "5d0b4a52",
    "version": "500",
}
TARGET = {
    "name": "gang-017",
    "pod": "gang-017-0",
    "uid": "9a3e0c6a-0017",
    "short": "9a3e0c6a",
    "version": "731",
}


def aim(path: str = "/", body: str = "") -> Call:
    """Return a call for the first gang, aimed at the second."""
    return aimed(Call("GET", path, "application/json", body, 200), RECORDED, TARGET)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/pods/gang-001-0", "/pods/gang-017-0"),
        ("/podgroups/gang-001-main-5d0b4a52", "/podgroups/gang-017-main-9a3e0c6a"),
        ("/events?fieldSelector=uid%3D5d0b4a52-0001", "/events?fieldSelector=uid%3D9a3e0c6a-0017"),
        ("/pods?limit=500&resourceVersion=500", "/pods?limit=500&resourceVersion=731"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    """The longest identifier wins; a number is a version only where one can stand."""
    assert aim(path).path == expected


def test_bodies() -> None:
    """Preconditions and owners are those of the other gang; everything else stays."""
    call = aim(body='{"uid":"5d0b4a52-0001","resourceVersion":"500","minCount":500}')
    assert call.body == '{"uid":"9a3e0c6a-0017","resourceVersion":"731","minCount":500}'
