"""Golden cases: folders with an event, a cluster and the plan that a function makes of them.

`plan.yaml` is the plan. Event and cluster are an excerpt of a recording, which `case.yaml` names, or were
written by hand: `event.json` and `cluster.yaml`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import yaml

from muster import steps
from muster.operator.plan import as_yaml, plan_step
from muster.replay.recorded_requests import RecordedRequest, read_events, time_of
from muster.replay.snapshots import Objects, read_snapshots
from muster.runtime.step import Step
from tests.replays.excerpts import Excerpt

ROOT = Path(__file__).parent
CONDITIONS = ROOT / "conditions.yaml"
"""What owners are told at the end of each recording, by story and moment."""
RECORDED = {"case.yaml", "plan.yaml"}
"""Files of a case whose event and cluster stand in a recording."""
HANDWRITTEN = {"event.json", "cluster.yaml", "plan.yaml"}
"""Files of a case whose event and cluster were written by hand."""


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
    def capture(self) -> RecordedRequest:
        """Its event."""
        return _capture(self.folder)

    @property
    def objects(self) -> Objects:
        """Its cluster."""
        return copy.deepcopy(_objects(self.folder))

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
        return as_yaml(plan_step(self.step, self.capture, self.objects, self.now))


@cache
def _capture(folder: Path) -> RecordedRequest:
    excerpt = _excerpt(folder)
    if excerpt is not None:
        return excerpt.capture()
    (only,) = read_events(folder / "event.json")
    return only


@cache
def _objects(folder: Path) -> Objects:
    excerpt = _excerpt(folder)
    return read_snapshots([folder / "cluster.yaml"])[0].objects if excerpt is None else excerpt.objects()


@cache
def _excerpt(folder: Path) -> Excerpt | None:
    path = folder / "case.yaml"
    return Excerpt.read(path) if path.exists() else None


def cases(root: Path = ROOT) -> list[Case]:
    """All cases of all functions."""
    return [Case(folder) for name in steps.step_names() for folder in sorted(root.glob(f"{name}/*/"))]


def write(path: Path, content: object) -> None:
    """Write YAML that is read by people."""
    path.write_text(yaml.safe_dump(content, sort_keys=False, width=110))
