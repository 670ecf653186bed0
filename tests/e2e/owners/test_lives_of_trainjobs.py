"""What a TrainJob goes through: suspended, resumed, its JobSet and Workload made anew, made again itself."""

from __future__ import annotations

import pytest

from muster.policy.group_labels import GATE
from tests.cluster import manifests
from tests.cluster.api import MERGE_PATCH
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_trainjob
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

OURS = ("PodGroupsReady", "PodGroupsScheduled")
SHOWN_WHILE_WAITING = "PodGroupsNotScheduled"


def test_conditions_outlast_suspension_rebuilding_and_completion(
    story: RealStory, muster_on_it: Muster
) -> None:
    """Once they are there no writer drops one; Complete comes beside them, and they say what was last."""
    story.add_nodes(1)
    owner = story.create(a_trainjob("llama", "torch-distributed", nodes=2))
    _runs_and_says_so(story)

    story.patch(owner, {"spec": {"suspend": True}})
    story.wait("pods and group are gone", lambda now: not now.pods() and not now.groups(), 90)
    story.wait_for_true("TrainJob", "llama", "Suspended")
    story.patch(owner, {"spec": {"suspend": False}})
    _runs_and_says_so(story)

    workload = story.recording.now("Workload")["llama"]
    story.delete({"apiVersion": "scheduling.k8s.io/v1beta1", **workload})
    muster_on_it.sweep()  # an update of the TrainJob may bring the Workload back before it
    story.wait("the Workload is made anew", lambda now: _is_another(now, workload))

    before, old = uids(story.pods()), set(story.groups())
    story.delete({"apiVersion": "jobset.x-k8s.io/v1alpha2", **story.recording.now("JobSet")["llama"]})
    story.wait(
        "the rebuilt JobSet's pods alone run", lambda now: _renewed(now, before) == now.running() == 2, 120
    )
    assert not {story.group_name(pod) for pod in story.pods()} & old
    _runs_and_says_so(story)

    story.finish_pods(story.pods())
    story.wait_for_true("TrainJob", "llama", "Complete")
    assert muster_on_it.idle()
    story.recording.quiet()
    types = _histories(story)
    first = next(number for number, of_entry in enumerate(types) if set(OURS) <= set(of_entry))
    assert [of_entry for of_entry in types[first:] if not set(OURS) <= set(of_entry)] == []
    of_muster = {*OURS, SHOWN_WHILE_WAITING}
    assert [
        of_entry for of_entry in types if set(of_entry) - of_muster and of_entry[-1] in of_muster
    ] == [], "the State column"
    assert _statuses(story) == {"True"}


def _is_another(story: RealStory, workload: Object) -> bool:
    """Whether a Workload of the same name exists, and it is not this one."""
    now = story.recording.now("Workload").get(workload["metadata"]["name"])
    return now is not None and now["metadata"]["uid"] != workload["metadata"]["uid"]


def test_a_trainjob_made_again_does_not_wait_for_old_pods_that_hang(story: RealStory) -> None:
    """Its Workload's name is free, its group is another one, and the old one ends with the last old pod."""
    story.add_nodes(1)
    body = a_trainjob("llama", "torch-distributed", nodes=3)
    owner = story.create(body)
    story.wait("three pods run", lambda now: now.running() == 3)
    (old,), hanging = story.groups(), story.pods()
    for pod in hanging:
        story.patch({**_POD, **pod}, {"metadata": {"finalizers": ["example.com/hang"]}})
    story.delete(owner)
    kinds = ("TrainJob", "JobSet", "Job")
    story.wait("it is gone", lambda now: not any(map(now.recording.now, kinds)))
    # Trainer may make a last JobSet for the old UID. A Job made anew at that instant gets its pods later:
    # the Job controller still expects pods of the one before.
    story.recording.quiet()
    story.create(body)

    story.wait("three new pods run", lambda now: len(_running_elsewhere(now, old)) == 3, 120)
    assert uids(hanging) <= uids(story.pods())
    assert all("deletionTimestamp" in pod["metadata"] for pod in story.pods() if story.group_name(pod) == old)
    story.wait("the old group is ending", lambda now: "deletionTimestamp" in now.groups()[old]["metadata"])
    (new,) = set(story.groups()) - {old}
    assert story.groups()[new]["spec"]["schedulingPolicy"] == {"gang": {"minCount": 3}}

    for pod in hanging:
        story.api.must("PATCH", manifests.path({**_POD, **pod}), _LET_GO, MERGE_PATCH)
    story.wait("old pods and group are gone", lambda now: set(now.groups()) == {new} and len(now.pods()) == 3)
    assert story.running() == 3
    assert not any(GATE in story.gates(pod) for pod in story.pods())


def _runs_and_says_so(story: RealStory) -> None:
    story.wait("two pods run", lambda now: now.running() == 2, 90)
    story.wait("conditions say so", lambda now: _statuses(now) == {"True"})


def _statuses(story: RealStory) -> set[str]:
    """The statuses of Muster's conditions."""
    return {story.condition("TrainJob", "llama", condition_type) for condition_type in OURS}


def _histories(story: RealStory) -> list[list[str]]:
    """The types of the TrainJob's conditions, in their order, at each of its changes."""
    entries = [entry for entry in story.recording.entries() if entry.kind == "TrainJob"]
    statuses = [entry.object.get("status") or {} for entry in entries]
    return [[condition["type"] for condition in status.get("conditions") or []] for status in statuses]


def _renewed(story: RealStory, before: set[str]) -> int:
    """How many pods there are once all of before are gone, 0 until then."""
    now = uids(story.pods())
    return 0 if now & before else len(now)


def _running_elsewhere(story: RealStory, group: str) -> list[Object]:
    pods = [pod for pod in story.pods() if story.group_name(pod) != group]
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


_POD: Object = {"apiVersion": "v1", "kind": "Pod"}
_LET_GO: Object = {"metadata": {"finalizers": None}}
