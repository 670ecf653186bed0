"""Plain pods of one gang on the local stack, as status, get, explain and Events tell of them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from muster.cli.explain_gang import explain_gang
from muster.cli.status import read_status
from muster.cluster.observe.gathered import GatheredGroup, read_group_and_pods
from muster.cluster.versioned import Versioned
from muster.policy.model import Plan
from muster.policy.plans.tell_gang import plan_telling
from muster.replay.gangs import gangs_of
from muster.replay.snapshots import Object
from tests.stories.stage import TEAM, LocalStage

pytestmark = pytest.mark.timeout(120)


def a_pod(number: int) -> Object:
    """One of three workers."""
    labels = {"muster.dev/min-count": "3", "muster.dev/gang": "sweep"}
    metadata = {"name": f"worker-{number}", "labels": labels}
    containers = [{"name": "main", "image": "example.com/train", "resources": {"requests": {"cpu": "1"}}}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def test_a_gang_of_plain_pods_is_told_everywhere() -> None:
    """Two of three wait, by their gates, and all commands say for what; with the third all are bound."""
    with LocalStage() as stage:
        for number in (1, 2):
            stage.create(a_pod(number))
        stage.until("the group exists", lambda: bool(stage.all("PodGroup")))
        cluster = Versioned(stage.client)
        (created, *_) = (pod["metadata"]["creationTimestamp"] for pod in stage.all("Pod"))
        now = datetime.fromisoformat(created)
        (item,) = read_status(cluster, TEAM).items
        assert (item.what, item.reason) == ("podgroup/sweep", "WaitingForPods")
        assert "2 of 3 pods exist" in item.message
        (gang,) = gangs_of([*stage.all("Pod"), *stage.all("PodGroup")])
        assert (gang.what, gang.told.reason) == ("podgroup/sweep", "WaitingForPods")
        text = explain_gang(cluster, "podgroup", "sweep", TEAM, now, verbose=True)
        assert "3 pods together, minCount 3; 2 exist" in text
        assert "patch_pods: WaitingForPods" in text
        assert _told(cluster, now) == []
        assert _told(cluster, now + timedelta(seconds=70)) == ["WaitingForPods", ""]

        stage.create(a_pod(3))
        stage.until("three are bound", lambda: stage.bound() == 3)
        assert read_status(cluster, TEAM).items == []
        stage.until("an Event", lambda: "Scheduled" in {event["reason"] for event in stage.all("Event")})


def test_a_podgroup_of_the_users_own_stays_as_it_is() -> None:
    """Pods that name it lose their gate, and start as it says."""
    with LocalStage() as stage:
        group = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "sweep"}}
        created = stage.create(group | {"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}})
        stage.create(a_pod(1))
        stage.until("it is bound", lambda: stage.bound() == 1)
        (found,) = stage.all("PodGroup")
        assert (found["spec"], found["metadata"]["uid"]) == (created["spec"], created["metadata"]["uid"])


def _told(cluster: Versioned, now: datetime) -> list[str]:
    """Return the reasons of the Events that a sweep would make at a time."""
    ref = GatheredGroup("scheduling.k8s.io/v1beta1", "PodGroup", TEAM, "sweep")
    decision = plan_telling(read_group_and_pods(cluster, ref), now)
    actions = decision.actions if isinstance(decision, Plan) else ()
    return [str((action.body or {}).get("reason", "")) for action in actions]
