"""A story that is being recorded: Muster's functions step by step, and moments between the steps.

The functions run here one at a time, each with the token of its own service account, so that every state on
the way stands still long enough to be kept.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from muster import steps
from muster.local.stories.watching import Entry, state
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.replay.activity import Activity, ActivityHandler
from muster.runtime.app import wall_clock
from muster.runtime.config import Settings, connect
from muster.runtime.handle import Handler
from tests.cluster import controllers, manifests
from tests.cluster.api import MERGE_PATCH
from tests.cluster.cluster import Cluster
from tests.cluster.processes import until
from tests.cluster.sink import Sink
from tests.e2e.support.admission import policies_at_work
from tests.e2e.support.muster import NAMESPACE, SWEEP
from tests.e2e.support.story import Story
from tests.replays.recording.adapters import REFERENCE, RESOURCE, events
from tests.replays.recording.take import Object, Take

KINDS = (
    "ClusterTrainingRuntime",
    "TrainJob",
    "TrainingRuntime",
    "JobSet",
    "Job",
    "Workload",
    "PodGroup",
    "Pod",
)
"""What moments hold beside the Namespace, in their order; the adapters watch just these."""

REST = 2.0
"""Seconds without a change after which no more comes: the Job controller counts pods once a second."""

_SWEEP = {"ce-specversion": "1.0", "ce-id": "step", "ce-source": "/tests/replays", "ce-type": SWEEP}
_VERBS = {"ADDED": "add", "MODIFIED": "update", "DELETED": "delete"}


class Play(Story):
    """A story while it is recorded.

    Attributes:
        cluster: where it is played.
    """

    def __init__(self, cluster: Cluster, sink: Sink, namespace: str, runtime: str) -> None:
        """Makes the namespace and watches it.

        Args:
            cluster: with Muster's roles and policies, and nothing that reacts.
            sink: where the adapters send.
            namespace: of the story.
            runtime: the ClusterTrainingRuntime of the story; "" for none. Those of others are left out.
        """
        super().__init__(cluster, namespace)
        self.cluster = cluster
        self._sink = sink
        self._runtime = runtime
        self._moments: list[Object] = []
        for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
            self.recording.follow(resource)
        assert policies_at_work(cluster.api, namespace), "jobs get no mark"
        home = f"/api/v1/namespaces/{namespace}"
        assert until(lambda: self.api.request("GET", f"{home}/serviceaccounts/default").ok, 20), "no pods"
        self._home = _named(self.api.must("GET", home))

    def create(self, one: Object) -> Object:
        """Creates an object, in the story's namespace if its kind has one."""
        if one["kind"] != CLUSTER_TRAINING_RUNTIMES.kind:
            return super().create(one)
        created: Object = self.api.must("POST", manifests.collection(one), one)
        return created

    def add_node(self, name: str) -> None:
        """Adds one more node, which goes with the story."""
        add_node(self.cluster, name)
        self._nodes.append(name)

    def run(self, step: str) -> None:
        """One function looks at all it is responsible for, and does what is to be done.

        Raises:
            AssertionError: it failed or had nothing to do: the story is not what it was.
        """
        function = steps.step_named(step)
        account = self.cluster.service_account_kubeconfig(NAMESPACE, step.replace("_", "-"))
        settings = Settings(kubeconfig=str(account), deadline_seconds=60)
        handler = Handler(function, connect(settings, user_agent=function.manager), settings, wall_clock)
        done: list[Activity] = []
        with ActivityHandler(done.append):
            handler.handle(_SWEEP, b"")
        told = "\n".join(f"{one.about}: {one.outcome} {one.reason} {one.message}" for one in done)
        assert any(one.actions for one in done), f"{step} wrote nothing\n{told}"
        assert {one.outcome for one in done} <= {"done", "nothing"}, f"{step}\n{told}"

    def finish(self, mark: str) -> None:
        """The running pods of a group succeed.

        Written as the kubelet would: KWOK does it only for pods that an annotation says so of.
        """
        for pod in self.running_of(mark):
            containers = [_ended(one) for one in pod["status"]["containerStatuses"]]
            status = {"phase": "Succeeded", "containerStatuses": containers}
            self.api.must("PATCH", f"{manifests.path(pod)}/status", {"status": status}, MERGE_PATCH)

    def rest(self) -> None:
        """Waits until nothing has changed for a while, which begins now at the earliest."""
        seen = -1
        while seen < (now := len(self._entries())):
            seen = now
            time.sleep(REST)

    def still(self, moment: str) -> None:
        """A moment is when nothing changes any more."""
        self.rest()
        self._keep(moment, self._entries())

    def when(self, moment: str, condition: Callable[[list[Object]], bool], seconds: float = 60) -> None:
        """A moment is the first at which a condition on the pods holds, however soon it has passed.

        Raises:
            AssertionError: it never held.
        """
        self.recording.wait(moment, lambda now: condition(list(now.now("Pod").values())), seconds)
        self.rest()
        entries = self._entries()
        pasts = (entries[: length + 1] for length in range(len(entries)))
        self._keep(moment, next(past for past in pasts if condition(list(state(past, "Pod").values()))))

    def take(self) -> Take:
        """What was recorded, once both adapters have told of everything.

        Raises:
            AssertionError: they told more or less than a watch of the same objects.
        """
        seen = sorted((entry.kind, _VERBS[entry.change], entry.version) for entry in self._entries())
        until(lambda: self._told() == seen and len(self._events(REFERENCE)) == len(seen), 20)
        assert self._told() == seen, "the adapter did not tell what happened"
        assert len(self._events(REFERENCE)) == len(seen), "the modes differ"
        return Take(self._events(RESOURCE), self._events(REFERENCE), self._moments)

    def end(self) -> None:
        """Takes away the namespace, and waits until it is gone."""
        super().end()
        home = f"/api/v1/namespaces/{self.namespace}"
        assert until(lambda: not self.api.request("GET", home).ok, 60), f"{self.namespace} stays"

    def _events(self, mode: str) -> list[Object]:
        return events(self._sink, mode, self.namespace)

    def _told(self) -> list[tuple[str, str, int]]:
        return sorted(
            (
                event["kind"],
                event["type"].rpartition(".")[2],
                int(event["data"]["metadata"]["resourceVersion"]),
            )
            for event in self._events(RESOURCE)
        )

    def _entries(self) -> list[Entry]:
        others = CLUSTER_TRAINING_RUNTIMES.kind
        found = [entry for entry in self.recording.entries() if entry.kind in KINDS]
        return [entry for entry in found if entry.kind != others or entry.name == self._runtime]

    def _keep(self, moment: str, past: list[Entry]) -> None:
        found = [_kept(one) for kind in KINDS for _, one in sorted(state(past, kind).items())]
        items = [self._home, *found]
        self._moments.append({"apiVersion": "v1", "kind": "List", "moment": moment, "items": items})
        sys.stderr.write(f"  {moment}: {len(past)} changes, {len(items)} objects\n")


def add_node(cluster: Cluster, name: str) -> None:
    """A node of 8 CPUs, 32Gi and 4 GPUs in the zone of all others."""
    controllers.add_node(cluster.api, name, labels={"topology.kubernetes.io/zone": "z1"})


def _kept(found: Object) -> Object:
    metadata = {name: value for name, value in found["metadata"].items() if name != "managedFields"}
    return {**found, "metadata": metadata}


def _named(namespace: Object) -> Object:
    """A Namespace without what says when it was made: only its name and labels count."""
    metadata = {name: namespace["metadata"][name] for name in ("name", "labels")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "status": namespace["status"]}


def _ended(container: Object) -> Object:
    started = container["state"]["running"]["startedAt"]
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": started}
    return {**container, "ready": False, "started": False, "state": {"terminated": ended}}
