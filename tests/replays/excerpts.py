"""The excerpt of a recording that a golden case uses: one event, and the objects of one moment.

It is described in `case.yaml` of the case's folder:

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

from muster.objects import yaml_files
from muster.replay.recorded_requests import STRUCTURED, RecordedRequest
from muster.replay.snapshots import Object, Objects
from tests.replays import recorded

SWEEP = "sweep"
SWEPT_AT = "2026-11-21T08:30:00Z"


@dataclass(frozen=True)
class Excerpt:
    """One event and one moment of a recording.

    Attributes:
        recording: name of the recording, `4-job-scaled`.
        moment: name of the moment.
        event: kind and change, `PodGroup update`, or `sweep`.
        number: index among these events, from 1.
        mode: resource or reference.
    """

    recording: str
    moment: str
    event: str
    number: int = 1
    mode: str = "resource"

    @classmethod
    def read(cls, path: Path) -> Excerpt:
        """Read an excerpt from a file.

        Raises:
            TypeError: a field is missing or unknown.
        """
        return cls(**yaml_files.load(path.read_text()))

    def envelope(self) -> Object:
        """Return the event as JSON, without fields that no step reads.

        Raises:
            LookupError: the recording has no such event.
        """
        if self.event == SWEEP:
            return sweep()
        event: Object = recorded.slim(recorded.event(self.recording, self.event, self.number, self.mode))
        return event

    def capture(self) -> RecordedRequest:
        """Return the event as a function gets it; raises like `envelope`."""
        body = json.dumps(self.envelope(), ensure_ascii=False, separators=(",", ":"))
        return RecordedRequest({"content-type": STRUCTURED}, body.encode(), f"{self.recording}: {self.event}")

    def objects(self) -> Objects:
        """Return the objects of the moment, without fields that no step reads.

        Raises:
            LookupError: the recording has no such moment.
        """
        objects: Objects = recorded.slim(recorded.world_at(self.recording, self.moment).objects)
        return objects


def sweep() -> Object:
    """Return the event of a sweep."""
    return {
        "specversion": "1.0",
        "id": "sweep-1",
        "source": "/muster/replays",
        "type": "dev.muster.sweep",
        "time": SWEPT_AT,
    }
