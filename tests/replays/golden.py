"""Golden cases: folders with an event, the objects of a cluster and the plan of a step for them.

`plan.yaml` is the plan. Event and objects are either an excerpt of a recording, described in `case.yaml`, or
written by hand, in `event.json` and `cluster.yaml`.
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
"""The owners' conditions at the end of each recording, by story and moment."""
RECORDED = {"case.yaml", "plan.yaml"}
"""Files of a case with an excerpt of a recording."""
HANDWRITTEN = {"event.json", "cluster.yaml", "plan.yaml"}
"""Files of a case that was written by hand."""


@dataclass(frozen=True)
class GoldenCase:
    """One golden case.

    Attributes:
        folder: `tests/replays/<step>/<the rule, with hyphens>`.
    """

    folder: Path

    @property
    def sentence(self) -> str:
        """The rule that the case shows, as a sentence."""
        return self.folder.name.replace("-", " ")

    @property
    def step(self) -> Step:
        """The step that plans."""
        return steps.step_named(self.folder.parent.name)

    @property
    def capture(self) -> RecordedRequest:
        """The event."""
        return _capture(self.folder)

    @property
    def objects(self) -> Objects:
        """The objects of the cluster, as a copy."""
        return copy.deepcopy(_objects(self.folder))

    @property
    def now(self) -> datetime:
        """The time of the event."""
        return time_of(self.capture, datetime.fromtimestamp(0, UTC))

    @property
    def plan_file(self) -> Path:
        """The path of the golden plan."""
        return self.folder / "plan.yaml"

    def planned(self) -> str:
        """Return the plan of the current code, as `muster plan` prints it."""
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


def cases(root: Path = ROOT) -> list[GoldenCase]:
    """Return all cases of all steps."""
    return [GoldenCase(folder) for name in steps.step_names() for folder in sorted(root.glob(f"{name}/*/"))]


def write(path: Path, content: object) -> None:
    """Write an object as YAML, with keys in their order."""
    path.write_text(yaml.safe_dump(content, sort_keys=False, width=110))
