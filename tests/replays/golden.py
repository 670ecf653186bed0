"""Golden cases: folders with an event, the objects of a cluster and the plan of a step for them.

`plan.yaml` is the plan. Event and objects are either written by hand, in `event.json` and `cluster.yaml`, or
an excerpt of a recording, which `case.yaml` describes:

    recording: 4-job-scaled
    moment: before resize_gang to 2
    event: Job update   # or sweep, an event that no recording holds
    number: 5           # the fifth of them; 1 if unset
    mode: reference     # of the source; resource if unset
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import yaml

from muster.objects import yaml_files
from muster.runtime import steps
from muster.runtime.step import Step
from muster.testing import Case, plan_of
from muster.testing.recordings import SWEEP, slim, slim_event
from tests.replays import recorded

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
    def case(self) -> Case:
        """The event and the objects; do not change them."""
        return _case(self.folder)

    @property
    def plan_file(self) -> Path:
        """The path of the golden plan."""
        return self.folder / "plan.yaml"

    def planned(self) -> str:
        """Return the plan of the current code, as `muster plan` prints it."""
        return plan_of(self.step, self.case).as_yaml()


@cache
def _case(folder: Path) -> Case:
    described = folder / "case.yaml"
    return excerpt(**yaml_files.load(described.read_text())) if described.exists() else Case.read(folder)


def excerpt(recording: str, moment: str, event: str, number: int = 1, mode: str = "resource") -> Case:
    """Return a case of a recording, without fields that no step reads."""
    case = recorded.story_of(recording, mode).case(event, moment=moment, number=number)
    request = case.event if event == SWEEP else slim_event(case.event)
    return replace(case, event=request, objects=slim(case.objects))


def cases(root: Path = ROOT) -> list[GoldenCase]:
    """Return all cases of all steps."""
    return [GoldenCase(folder) for name in steps.step_names() for folder in sorted(root.glob(f"{name}/*/"))]


def write(path: Path, content: object) -> None:
    """Write an object as YAML, with keys in their order."""
    path.write_text(yaml.safe_dump(content, sort_keys=False, width=110))
