"""A cluster whose administrator has not switched the Workload API on, and then does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cluster.cluster import Options
from tests.cluster.control_plane import Release
from tests.e2e.conftest import Stage, Stages
from tests.e2e.support.owners import a_job, a_trainjob
from tests.e2e.support.story import Story

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = Options(release=Release("1.37", gates=(), apis=()))


def _owners_say_why(now: Story) -> bool:
    return all(
        now.reason(*owner, of_type) == "ApiNotServed"
        for owner in (("Job", "sweep"), ("TrainJob", "llama"))
        for of_type in ("PodGroupsReady", "PodGroupsScheduled")
    )


def test_marked_jobs_run_as_plain_jobs(stage: Stage, story: Story) -> None:
    """The API server drops the group's name but not the gate; Muster lifts it, makes nothing and says why."""
    story.add_nodes(2)
    story.create(a_job("sweep", pods=2))
    story.create(a_trainjob("llama", "torch-distributed", nodes=2))
    story.wait("four pods run", lambda now: now.running() == 4)
    story.wait("both owners say why", _owners_say_why, 90)
    assert stage.muster.idle()
    assert {(write.verb, write.resource) for write in story.writes()} == {
        ("patch", "pods"),
        ("patch", "jobs/status"),
        ("patch", "trainjobs/status"),
        ("create", "events"),
    }
    assert "ApiNotServed" in stage.muster.log("patch-pods")


def test_readiness_says_what_to_switch_on(stage: Stage) -> None:
    """Each function names the feature gate and the runtime-config that are missing.

    It is ready all the same: one that is not ready is sent no events, and would lift no gate.
    """
    for name in stage.muster.functions:
        status, words = stage.muster.readiness(name)
        assert status == 200, name
        assert "GenericWorkload" in words
        assert "scheduling.k8s.io/v1beta1" in words


def test_the_api_is_used_once_it_is_switched_on(
    stage: Stage, stages: Stages, tell: Callable[..., Story]
) -> None:
    """The next Job is a gang, and no function was started again."""
    functions = dict(stage.muster.functions)
    stages.switch(Release("1.37"))
    stage.muster.start_adapters()

    story = tell()
    story.add_nodes(2)
    story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3, 90)
    assert story.policy("main") == {"gang": {"minCount": 3}}
    assert stage.muster.functions == functions
