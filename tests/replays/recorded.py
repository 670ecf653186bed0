"""Access to the recordings by story: `1-torch` is the recording that `muster.testing` calls `torch`."""

from __future__ import annotations

from muster.data import RECORDINGS
from muster.replay.files import RecordedRequest
from muster.replay.snapshots import RecordedObjects
from muster.testing import Recording, shipped

FOLDER = RECORDINGS
STORIES = ("1-torch", "2-torchtune", "4-job-scaled", "5-does-not-fit")
"""The recordings that are replayed as a whole; 7 is used by golden cases about runtimes."""


def story_of(story: str, mode: str = "resource") -> Recording:
    """Return the recording of a story."""
    return shipped(story.partition("-")[2], mode)


def events(story: str, mode: str = "resource") -> tuple[RecordedRequest, ...]:
    """Return the events of a story, in order of arrival."""
    return story_of(story, mode).events


def moments(story: str) -> tuple[RecordedObjects, ...]:
    """Return the recorded moments of a story, each with all objects."""
    return story_of(story).moments


def world_at(story: str, moment: str) -> RecordedObjects:
    """Return the moment of this name."""
    return RecordedObjects(moment, story_of(story).at(moment))
