"""After a write the cache shows the API server's answer, before any event arrives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from muster.cluster import errors
from muster.cluster.http.client import Client
from muster.cluster.interface import Object, PatchType
from muster.objects.resources import CONFIGMAPS, EVENTS, NAMESPACES, NODES, PODS
from muster.simulator.apiserver import ApiServer
from muster.simulator.controllers import node
from muster.simulator.controllers.framework.cache import Cache
from muster.simulator.controllers.framework.execute import Executor
from muster.simulator.controllers.framework.writes import Apply, Bind, Create, Delete, Patch, RecordEvent
from tests.unit.simulator.controllers.support import merge


@dataclass
class _Bench:
    client: Client
    store: Cache
    executor: Executor

    def pod(self, name: str = "pod", **metadata: object) -> Object:
        """A pod that was created through the executor."""
        place = {"name": name, "namespace": "team-a"}
        spec = {"containers": [{"name": "main", "image": "example"}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {**place, **metadata}, "spec": spec}
        self.executor.execute(Create(PODS, body, "test"))
        return self.cached(name)

    def cached(self, name: str = "pod") -> Object:
        """The pod as the cache has it."""
        pod = self.store.get(PODS, "team-a", name)
        assert pod is not None
        return pod


@pytest.fixture
def bench() -> Iterator[_Bench]:
    """An executor with an empty cache and no informer; a namespace and a node are there."""
    with ApiServer() as server:
        client = Client.for_server(server.url)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}
        client.create(NAMESPACES, namespace, manager="test")
        client.create(NODES, node("node-1"), manager="test")
        store = Cache()
        yield _Bench(client, store, Executor(client, store))


def _deletion(pod: Object, uid: str = "") -> Delete:
    return Delete(PODS, pod["metadata"]["name"], "team-a", uid or pod["metadata"]["uid"])


def test_binding_is_visible_at_once(bench: _Bench) -> None:
    """A pod counts as bound from the moment of its Binding, so that its room is not given away twice."""
    ((resource, changed),) = bench.executor.execute(Bind(bench.pod(), "node-1"))
    assert (resource, changed["spec"]["nodeName"]) == (PODS, "node-1")
    assert bench.cached()["spec"]["nodeName"] == "node-1"


def test_unbound_pod_is_gone_after_its_deletion(bench: _Bench) -> None:
    """The API server deletes an unbound pod at once, and the cache forgets it."""
    bench.executor.execute(_deletion(bench.pod()))
    assert bench.store.all(PODS) == []


def test_bound_pod_is_terminating_after_its_deletion(bench: _Bench) -> None:
    """A bound pod stays until its kubelet is done; the cache shows that it is on its way out."""
    bench.executor.execute(Bind(bench.pod(), "node-1"))
    bench.executor.execute(_deletion(bench.cached()))
    assert bench.cached()["metadata"]["deletionTimestamp"]
    last = _deletion(bench.cached())
    bench.executor.execute(Delete(PODS, last.name, "team-a", last.uid, grace_seconds=0))
    assert bench.store.all(PODS) == []


def test_taking_the_last_finalizer_ends_a_deleted_pod(bench: _Bench) -> None:
    """A deleted pod that a finalizer held is gone with it, from the cache too."""
    pod = bench.pod(finalizers=["batch.kubernetes.io/job-tracking"])
    bench.executor.execute(_deletion(pod))
    assert bench.cached()["metadata"]["deletionTimestamp"]
    body = {"metadata": {"finalizers": None}}
    bench.executor.execute(Patch(PODS, "pod", "team-a", body, PatchType.MERGE, "test"))
    assert bench.store.all(PODS) == []


def test_write_to_an_object_that_is_gone_only_corrects_the_cache(bench: _Bench) -> None:
    """A patch that comes too late is no error; the cache learns that the object is gone."""
    bench.pod()
    bench.client.delete(PODS, "pod", "team-a")
    body = {"metadata": {"labels": {"late": "yes"}}}
    ((_, changed),) = bench.executor.execute(Patch(PODS, "pod", "team-a", body, PatchType.MERGE, "test"))
    assert changed["metadata"]["name"] == "pod"
    assert bench.store.all(PODS) == []


def test_deletion_never_hits_another_object_of_that_name(bench: _Bench) -> None:
    """A pod made anew since is left alone, and the cache takes the new one."""
    old = bench.pod()
    bench.client.delete(PODS, "pod", "team-a")
    new = bench.client.create(
        PODS, merge(old, {"metadata": {"uid": None, "resourceVersion": None}}), manager="test"
    )
    bench.executor.execute(_deletion(old))
    assert bench.cached()["metadata"]["uid"] == new["metadata"]["uid"]


def test_apply_takes_fields_over_by_force(bench: _Bench) -> None:
    """The Trainer applies with force: fields of other managers are its own afterwards."""
    body: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "it", "namespace": "team-a"},
    }
    bench.client.create(CONFIGMAPS, body | {"data": {"runtime": "theirs"}}, manager="other")
    bench.executor.execute(Apply(CONFIGMAPS, body | {"data": {"runtime": "ours"}}, "trainer"))
    stored = bench.client.get(CONFIGMAPS, "it", "team-a")
    assert stored is not None
    assert stored["data"] == {"runtime": "ours"}


def test_refusal_is_raised_and_written_as_an_event_once(bench: _Bench) -> None:
    """A write the server refuses raises, and says so in one Event however often it is tried."""
    owner = bench.pod("owner")
    invalid = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "UPPER", "namespace": "team-a"}}
    write = Create(PODS, {**invalid, "spec": owner["spec"]}, "test", failure="FailedCreate", owner=owner)
    for _ in range(2):
        with pytest.raises(errors.Invalid):
            bench.executor.execute(write)
    (event,) = bench.client.list(EVENTS, "team-a")
    assert (event["type"], event["reason"]) == ("Warning", "FailedCreate")
    assert event["involvedObject"]["uid"] == owner["metadata"]["uid"]


def test_same_event_is_written_once(bench: _Bench) -> None:
    """The same reason and message about an object make one Event; another message makes another."""
    pod = bench.pod()
    for message in ("full", "full", "fuller"):
        bench.executor.execute(RecordEvent(pod, "Warning", "FailedScheduling", message, "default-scheduler"))
    assert sorted(event["message"] for event in bench.client.list(EVENTS, "team-a")) == ["full", "fuller"]


def test_a_terminating_namespace_refuses_creates_without_a_retry(bench: _Bench) -> None:
    """A namespace on its way out refuses every create; that is no reason to try again."""
    held = bench.pod(finalizers=["example.com/hold"])
    bench.client.delete(NAMESPACES, "team-a")
    body = {**merge(held, {"metadata": {"uid": None, "resourceVersion": None, "name": "late"}})}
    assert bench.executor.execute(Create(PODS, body, "test")) == []
