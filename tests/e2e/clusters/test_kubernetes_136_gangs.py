"""A StatefulSet that is a gang on Kubernetes 1.36, where minCount never changes."""

from __future__ import annotations

import pytest

from tests.cluster.cluster import ClusterOptions
from tests.cluster.control_plane import Release
from tests.e2e.gangs.workloads import a_stateful_set, min_counts, scaled
from tests.e2e.support.muster import Muster
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(release=Release(minor="1.36"))


def test_it_starts_whole_and_keeps_its_size(story: RealStory, muster_on_it: Muster) -> None:
    """Three wait for room and run; two added pods join, and the gang stays one of three."""
    story.add_nodes(1, cpu=2)
    created = story.create(a_stateful_set("web", 3))
    story.wait("three pods exist without gates", lambda now: _ungated(now) == 3)
    story.recording.quiet()
    assert story.running() == 0
    story.add_nodes(1)
    story.wait("three pods run", lambda now: now.running() == 3)
    scaled(story, created, 5)
    story.wait("five pods run", lambda now: now.running() == 5)
    muster_on_it.sweep()
    story.recording.quiet()
    assert min_counts(story) == [3]


def _ungated(story: RealStory) -> int:
    return sum(not story.gates(pod) for pod in story.pods())
