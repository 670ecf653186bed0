"""The cache shows the newest version, whether it was watched or written."""

from __future__ import annotations

from muster.cluster.interface import Object
from muster.objects.resources import PODS
from muster.simulator.controllers.framework.cache import Cache
from tests.unit.simulator.controllers.support import an_object, merge, owned_by


def _pod(name: str = "pod", version: int = 5, **metadata: object) -> Object:
    return an_object("v1", "Pod", name, {}, **{"resourceVersion": str(version), "uid": "u1", **metadata})


def test_older_version_never_replaces_a_newer_one() -> None:
    """A watch event that lags behind the controller's own write is ignored."""
    store = Cache()
    assert store.put(PODS, _pod(version=10))
    assert not store.put(PODS, _pod(version=9))
    assert not store.put(PODS, _pod(version=10))
    assert store.put(PODS, _pod(version=11))


def test_deleted_object_does_not_come_back() -> None:
    """An event about an object whose deletion was seen is ignored; a new object of that name is not."""
    store = Cache()
    store.put(PODS, _pod())
    assert store.remove(PODS, _pod())
    assert not store.put(PODS, _pod(version=20))
    assert store.put(PODS, _pod(version=21, uid="u2"))
    assert not store.remove(PODS, _pod())
    assert store.get(PODS, "team-a", "pod") is not None


def test_an_assumed_binding_stays_until_the_next_version_of_the_pod() -> None:
    """An assumed binding is visible at once and gives way to the next version of the pod."""
    store = Cache()
    store.put(PODS, _pod(version=5))
    store.amend(PODS, merge(_pod(version=5), {"spec": {"nodeName": "node-1"}}))
    assert _stored_pod(store)["spec"] == {"nodeName": "node-1"}
    assert store.put(PODS, _pod(version=6))
    assert _stored_pod(store)["spec"] == {}


def _stored_pod(store: Cache) -> Object:
    pod = store.get(PODS, "team-a", "pod")
    assert pod is not None
    return pod


def test_a_list_removes_deleted_objects_but_not_newer_objects() -> None:
    """After a relist, objects missing from it are gone unless they are newer than the list."""
    store = Cache()
    store.put(PODS, _pod("old", 5))
    store.put(PODS, _pod("new", 12, uid="u2"))
    changed = store.replace(PODS, [_pod("other", 7, uid="u3")], version="10")
    assert [item["metadata"]["name"] for item in changed] == ["old", "other"]
    assert [item["metadata"]["name"] for item in store.all(PODS)] == ["new", "other"]


def test_controlled_objects_are_found_by_their_owner() -> None:
    """The index follows objects as they come, lose their owner, and go."""
    owner = an_object("batch/v1", "Job", "job", {})
    store = Cache()
    store.put(PODS, _pod("a", 5, ownerReferences=owned_by(owner)))
    store.put(PODS, _pod("b", 6, uid="u2", ownerReferences=owned_by(owner)))
    store.put(PODS, _pod("c", 6, uid="u3", namespace="team-b", ownerReferences=owned_by(owner)))
    assert _pods_of(owner, store) == ["a", "b"], "owners are of the same namespace"
    store.put(PODS, _pod("a", 7))
    assert _pods_of(owner, store) == ["b"]
    store.remove(PODS, _pod("b", uid="u2"))
    assert _pods_of(owner, store) == []


def _pods_of(owner: Object, store: Cache) -> list[str]:
    pods = store.controlled(PODS, owner["metadata"]["namespace"], owner["metadata"]["uid"])
    return [pod["metadata"]["name"] for pod in pods]
