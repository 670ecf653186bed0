"""Golden cases: folders with an event, a cluster and the plan that a function makes of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import yaml

from muster import steps
from muster.operator import planning
from muster.replay.recorded_requests import Capture, read_events, time_of
from muster.replay.snapshots import Objects, read_worlds
from muster.runtime.step import Step

ROOT = Path(__file__).parent
CONDITIONS = ROOT / "conditions.yaml"
"""What owners are told at the end of each recording, by story and moment."""


@dataclass(frozen=True)
class Case:
    """One folder.

    Attributes:
        folder: `tests/replays/<function>/<what holds>`.
    """

    folder: Path

    @property
    def sentence(self) -> str:
        """What holds, in words."""
        return self.folder.name.replace("-", " ")

    @property
    def step(self) -> Step:
        """The step it is about."""
        return steps.step_named(self.folder.parent.name)

    @property
    def capture(self) -> Capture:
        """Its event."""
        return _event(self.folder / "event.json")

    @property
    def objects(self) -> Objects:
        """Its cluster."""
        return copy.deepcopy(_cluster(self.folder / "cluster.yaml"))

    @property
    def now(self) -> datetime:
        """The time of its event."""
        return time_of(self.capture, datetime.fromtimestamp(0, UTC))

    @property
    def plan_file(self) -> Path:
        """Where the plan stands."""
        return self.folder / "plan.yaml"

    def planned(self) -> str:
        """The plan as `muster plan` prints it today."""
        return planning.as_yaml(planning.plan_on(self.step, self.capture, self.objects, self.now))


@cache
def _event(path: Path) -> Capture:
    (only,) = read_events(path)
    return only


@cache
def _cluster(path: Path) -> Objects:
    return read_worlds([path])[0].objects


def cases(root: Path = ROOT) -> list[Case]:
    """All cases of all functions."""
    return list(_found(root))


def _found(root: Path) -> Iterator[Case]:
    for name in steps.step_names():
        for path in sorted((root / name).glob("*/event.json")):
            yield Case(path.parent)


def write(path: Path, content: object) -> None:
    """Write YAML that is read by people."""
    path.write_text(yaml.safe_dump(content, sort_keys=False, width=110))
