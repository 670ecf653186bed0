"""PodGroups that a user deletes, and fallback groups that a user replaces by a gang."""

from __future__ import annotations

import pytest

from tests.cluster import manifests
from tests.cluster.api import MERGE_PATCH
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import Object, a_job, with_policy
from tests.e2e.support.story import RealStory
from tests.e2e.support.trees import uids

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

VERSION = "scheduling.k8s.io/v1beta1"


def test_a_group_deleted_while_its_pods_run_stays_until_the_last_of_them_ends(
    story: RealStory, muster_on_it: Muster
) -> None:
    """Until then it is being deleted, cannot be created again, and places the replacement of a failed pod."""
    story.add_nodes(1)
    owner = story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    group = _named(story.group("main"))
    story.delete(group)
    story.wait("it is being deleted", lambda now: "deletionTimestamp" in now.group("main")["metadata"])
    path = manifests.collection(group)
    answer = story.api.request("POST", path, _anew(group, {"gang": {"minCount": 3}}))
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.message.startswith("object is being deleted: ")

    before = uids(story.pods())
    story.finish_pods(story.pods()[:1], "Failed")
    story.wait("a replacement runs", lambda now: now.running() == 3 and bool(uids(now.pods()) - before))
    assert story.group("main")["metadata"]["uid"] == group["metadata"]["uid"]

    story.patch(owner, {"spec": {"suspend": True}})
    story.wait("pods and group are gone", lambda now: not now.groups() and not now.members(_name(group)), 90)
    assert muster_on_it.idle()
    story.patch(owner, {"spec": {"suspend": False}})
    story.wait("three new pods run", lambda now: now.running() == 3, 90)
    assert story.group("main")["metadata"]["uid"] != group["metadata"]["uid"]


def test_running_pods_of_a_fallback_group_keep_running_when_a_gang_replaces_it(
    story: RealStory, muster_on_it: Muster
) -> None:
    """They run on where they are, and the replacement of one that fails joins the gang."""
    story.add_nodes(2)
    _broken_job(story)
    story.wait("three pods run", lambda now: now.running() == 3)
    before = {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in story.pods()}
    _replace_by_gang(story, muster_on_it)
    story.recording.quiet()
    assert {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in story.pods()} == before
    assert story.running() == 3

    story.finish_pods(story.pods()[:1], "Failed")
    story.wait("a replacement runs", lambda now: now.running() == 3 and bool(uids(now.pods()) - set(before)))
    assert story.policy("main") == {"gang": {"minCount": 3}}


def _broken_job(story: RealStory) -> None:
    """Three pods of four CPUs, which wait in a fallback group since their policy is invalid."""
    story.create(with_policy(a_job("sweep", pods=3, cpu=4), "workload: {gangs: []}"))
    story.wait("the fallback group is made", lambda now: len(now.groups()) == 1)
    assert story.policy("main") == {"basic": {}}


def _replace_by_gang(story: RealStory, muster: Muster) -> None:
    """What a person does: the policy cannot be changed, and a deleted group hangs on its finalizer."""
    fallback_group, gang = _named(story.group("main")), {"gang": {"minCount": 3}}
    path = manifests.path(fallback_group)
    change = {"spec": {"schedulingPolicy": {"basic": None, **gang}}}
    assert story.api.request("PATCH", path, change, MERGE_PATCH).status == 422
    assert muster.idle()
    with muster.without_sweeps():  # which would make the fallback group anew
        story.delete(fallback_group)
        story.wait("it hangs", lambda now: "deletionTimestamp" in now.group("main")["metadata"])
        story.patch(fallback_group, {"metadata": {"finalizers": None}})
        story.create(_anew(fallback_group, gang))
    story.wait("it is a gang", lambda now: len(now.groups()) == 1 and now.policy("main") == gang)


def _anew(group: Object, policy: Object) -> Object:
    """Return a PodGroup of the same name and owner, with another policy and no Workload."""
    kept = {key: group["metadata"][key] for key in ("name", "namespace", "labels", "ownerReferences")}
    spec = {"schedulingPolicy": policy}
    return {"apiVersion": VERSION, "kind": "PodGroup", "metadata": kept, "spec": spec}


def _named(group: Object) -> Object:
    return {"apiVersion": VERSION, "kind": "PodGroup", **group}


def _name(group: Object) -> str:
    name: str = group["metadata"]["name"]
    return name
