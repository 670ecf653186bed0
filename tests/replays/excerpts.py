"""What a golden case takes out of a recording: one event, and the objects of one moment.

An excerpt stands in `case.yaml` of the case's folder:

    recording: 4-job-scaled
    moment: before resize_gang to 2
    event: Job update   # or sweep, an event that no recording holds
    number: 5           # the fifth of them; 1 if unset
    mode: reference     # of the source; resource if unset
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from muster import yaml_files
from muster.replay.recorded_requests import STRUCTURED, RecordedRequest
from muster.replay.snapshots import Object, Objects
from tests.replays import recorded

SWEEP = "sweep"
SWEPT_AT = "2026-11-21T08:30:00Z"


@dataclass(frozen=True)
class Excerpt:
    """One event and one moment of a recording.

    Attributes:
        recording: its name, `4-job-scaled`.
        moment: the name of the moment.
        event: kind and what happened, `PodGroup update`, or `sweep`.
        number: which of those events, from 1.
        mode: resource or reference.
    """

    recording: str
    moment: str
    event: str
    number: int = 1
    mode: str = "resource"

    @classmethod
    def read(cls, path: Path) -> Excerpt:
        """The excerpt of a file.

        Raises:
            TypeError: a field is missing or unknown.
        """
        return cls(**yaml_files.load(path.read_text()))

    def envelope(self) -> Object:
        """The event as JSON, without what no step reads.

        Raises:
            LookupError: the recording has no such event.
        """
        if self.event == SWEEP:
            return sweep()
        event: Object = recorded.slim(recorded.event(self.recording, self.event, self.number, self.mode))
        return event

    def capture(self) -> RecordedRequest:
        """The event as a function gets it; raises as `envelope` does."""
        body = json.dumps(self.envelope(), ensure_ascii=False, separators=(",", ":"))
        return RecordedRequest({"content-type": STRUCTURED}, body.encode(), f"{self.recording}: {self.event}")

    def objects(self) -> Objects:
        """The objects of the moment, without what no step reads.

        Raises:
            LookupError: the recording has no such moment.
        """
        objects: Objects = recorded.slim(recorded.world_at(self.recording, self.moment).objects)
        return objects


def sweep() -> Object:
    """The event of a sweep sent by hand."""
    return {
        "specversion": "1.0",
        "id": "sweep-1",
        "source": "/muster/replays",
        "type": "dev.muster.sweep",
        "time": SWEPT_AT,
    }
