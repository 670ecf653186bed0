"""What is compiled for one component of the real control plane spares the next: their pins must agree."""

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
    """One version or flag that differs, and whatever imports the package is compiled twice."""
    assert len({component.inlined for component in lane}) == 1
    for one, other in combinations(lane, 2):
        mine, theirs = _required(one), _required(other)
        shared = mine.keys() & theirs.keys()
        assert len(shared) > 50, "most of what they compile"
        assert {path: mine[path] for path in shared} == {path: theirs[path] for path in shared}
