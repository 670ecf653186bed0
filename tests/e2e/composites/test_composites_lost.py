"""CompositePodGroup switched off where some exist: running pods run on, waiting owners report a failure."""

from __future__ import annotations

import pytest

from tests.cluster.control_plane import Release
from tests.e2e.conftest import RealStage, Stages
from tests.e2e.support.owners import Object
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import chat, runs, uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OVERLAY = "composite-pod-groups"

WITHOUT = Release(
    "1.37", gates=("GenericWorkload", "TopologyAwareWorkloadScheduling"), apis=("scheduling.k8s.io/v1beta1",)
)


def test_groups_of_groups_get_fallback_groups_once_their_kind_is_switched_off(
    stage: RealStage, stages: Stages, story: RealStory
) -> None:
    """A JobSet runs, another one has its Workload but no groups yet: its pods then run in fallback groups.

    The last story of its stage, which is not what its options say any more.
    """
    story.create(chat())
    runs(story)
    running = uids(story.pods())
    stage.muster.stop_function("create-pod-groups")
    story.create(chat("late"))
    story.wait("its pods wait for their groups", lambda now: len(now.pods()) == 8)
    story.wait("its Workload is stored", lambda now: "late" in now.recording.now("Workload"))
    assert story.recording.now("Workload")["late"]["spec"]["compositePodGroupTemplates"]

    stage.muster.stop_adapters()
    with story.interrupted():
        stages.switch(WITHOUT)
        stage.muster.start_function("create-pod-groups")
    stage.muster.start_adapters()
    assert stage.muster.idle()
    stage.muster.dead_letters.clear()  # what was sent while a function or the API server was away
    story.add_nodes(2, cpu=4)
    stage.muster.sweep()
    story.wait("all pods run", lambda now: now.running() == 8, 90)

    assert running <= uids(story.pods())
    policies = {
        name.rsplit("-", 1)[0]: one["spec"]["schedulingPolicy"] for name, one in story.groups().items()
    }
    gang: Object = {"gang": {"minCount": 2}}
    basic: Object = {"basic": {}}
    assert policies == {
        "chat-prefill": gang,
        "chat-decode": gang,
        "late-prefill": basic,
        "late-decode": basic,
    }
    story.wait("both say why", lambda now: _says_why(now, "chat") and _says_why(now, "late"))
    story.wait("Events say so", lambda now: _owners_with_events(now) == {"chat", "late"})


def _owners_with_events(story: RealStory) -> set[str]:
    """The JobSets of which Events say why."""
    events = story.recording.now("Event").values()
    return {event["involvedObject"]["name"] for event in events if _is_why(event)}


def _says_why(story: RealStory, jobset: str) -> bool:
    conditions = story.recording.now("JobSet")[jobset]["status"].get("conditions") or []
    return any(condition["type"] == "PodGroupsReady" and _is_why(condition) for condition in conditions)


def _is_why(event: Object) -> bool:
    """Whether a condition or Event names what is missing."""
    return bool(event["reason"] == "InvalidPolicy" and "CompositePodGroup" in event["message"])
