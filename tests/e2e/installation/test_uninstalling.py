"""Muster is removed while jobs run, in the order that eventing/README.md gives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from muster.local.stories.laws import min_count
from muster.policy.group_labels import GATE
from tests.cluster.processes import until
from tests.e2e.conftest import RealStage, Stages
from tests.e2e.support import admission
from tests.e2e.support.owners import a_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_jobs_outlive_muster(stage: RealStage, stages: Stages, begin_story: Callable[..., RealStory]) -> None:
    """What runs runs on, what waits is bound when there is room, replacements and new Jobs are plain.

    A gang that waits needs one less for each replacement, which is none of it any more.
    """
    stages.spoil()
    story = begin_story()
    story.add_nodes(2)
    story.create(a_job("runs", pods=3, cpu=4))
    story.wait("three pods run", lambda now: now.running() == 3)
    story.create(a_job("waits", pods=3, cpu=3))
    story.wait_for_reason("Job", "waits", "PodGroupsScheduled", "Unschedulable")

    story.opt_out()
    stage.muster.remove_policies()
    assert until(lambda: not admission.stamps_pods(story.api, story.namespace), 30)
    story.wait("no pod has the gate", lambda now: not any(GATE in now.gates(pod) for pod in now.pods()))
    waiting = [pod for pod in story.pods() if "nodeName" not in pod["spec"]]
    story.delete({"apiVersion": "v1", "kind": "Pod", **waiting[0]})
    story.wait("its replacement runs", lambda now: now.running() == 4 and len(now.ungrouped()) == 1)
    group = story.group_name(waiting[0])
    story.wait("two are its gang", lambda now: min_count(now.groups()[group]) == 2)
    story.recording.quiet()
    assert stage.muster.idle()
    stage.muster.stop()

    story.finish_pods(
        [pod for pod in story.pods() if pod["metadata"]["name"].startswith("runs")][:1], "Failed"
    )
    story.wait("its replacement runs", lambda now: now.running() == 4 and len(now.ungrouped()) == 2)
    story.add_nodes(1)
    story.wait("what waited runs", lambda now: now.running() == 6)
    story.create(a_job("later", pods=2))
    story.wait("a new Job runs as a plain one", lambda now: now.running() == 8 and len(now.ungrouped()) == 4)
