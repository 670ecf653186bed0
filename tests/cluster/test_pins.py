"""Components that are built one after another pin the same versions, so that packages are compiled once."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from tests.cluster.modules import HERE, LANES, Component

_REQUIRED = re.compile(r"^\t(\S+) (v\S+)(?: // indirect)?$", re.MULTILINE)


def _required(component: Component) -> dict[str, str]:
    return dict(_REQUIRED.findall((HERE / component.module / "go.mod").read_text()))


@pytest.mark.parametrize(
    "lane", LANES, ids=lambda lane: " and ".join(dict.fromkeys(made.module for made in lane))
)
def test_components_built_one_after_another_are_compiled_alike(lane: tuple[Component, ...]) -> None:
    """The components of a lane agree in compiler flags and in the versions of shared modules."""
    assert len({component.inlined for component in lane}) == 1
    for first, second in combinations(lane, 2):
        pins, other_pins = _required(first), _required(second)
        shared = pins.keys() & other_pins.keys()
        assert len(shared) > 50, "most of what they compile"
        assert {path: pins[path] for path in shared} == {path: other_pins[path] for path in shared}
