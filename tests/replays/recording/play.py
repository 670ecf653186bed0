"""A story while it is recorded: runs Muster's functions step by step, and stores moments between the steps.

The functions run here one at a time, each with the token of its own service account, so that every state on
the way stands still long enough to be kept.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from muster.local.stories.watching import Entry, state
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.replay.activity import Activity, ActivityHandler
from muster.runtime import steps
from muster.runtime.config import Settings, connect
from muster.runtime.handle import Handler
from muster.runtime.http.app import wall_clock
from tests.cluster import controllers, manifests
from tests.cluster.api import MERGE_PATCH
from tests.cluster.cluster import RealCluster
from tests.cluster.processes import until
from tests.cluster.sink import Sink
from tests.e2e.support.admission import policies_at_work
from tests.e2e.support.muster import NAMESPACE, SWEEP
from tests.e2e.support.story import RealStory
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
"""The kinds in a moment beside the Namespace, in this order; the adapters watch the same kinds."""

REST = 2.0
"""Seconds without a change after which none is expected: the Job controller counts pods once a second."""

_SWEEP = {"ce-specversion": "1.0", "ce-id": "step", "ce-source": "/tests/replays", "ce-type": SWEEP}
_VERBS = {"ADDED": "add", "MODIFIED": "update", "DELETED": "delete"}


class Play(RealStory):
    """A story while it is recorded.

    Attributes:
        cluster: where it is played.
    """

    def __init__(self, cluster: RealCluster, sink: Sink, namespace: str, runtime: str) -> None:
        """Create the namespace and watch it.

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

    def create(self, obj: Object) -> Object:
        """Create an object, in the story's namespace if its kind has one."""
        if obj["kind"] != CLUSTER_TRAINING_RUNTIMES.kind:
            return super().create(obj)
        created: Object = self.api.must("POST", manifests.collection(obj), obj)
        return created

    def add_node(self, name: str) -> None:
        """Add a node, which is deleted with the story."""
        add_node(self.cluster, name)
        self._nodes.append(name)

    def run(self, step: str) -> None:
        """Run one function with a sweep."""
        function = steps.step_named(step)
        account = self.cluster.service_account_kubeconfig(NAMESPACE, step.replace("_", "-"))
        settings = Settings(kubeconfig=str(account), deadline_seconds=60)
        handler = Handler(function, connect(settings, user_agent=function.manager), settings, wall_clock)
        done: list[Activity] = []
        with ActivityHandler(done.append):
            handler.handle(_SWEEP, b"")
        log = "\n".join(
            f"{activity.about}: {activity.outcome} {activity.reason} {activity.message}" for activity in done
        )
        assert any(activity.actions for activity in done), f"{step} wrote nothing\n{log}"
        assert {activity.outcome for activity in done} <= {"done", "nothing"}, f"{step}\n{log}"

    def finish(self, label: str) -> None:
        """Let the running pods of a group succeed.

        Written as the kubelet would: KWOK does it only for pods that an annotation says so of.
        """
        for pod in self.running_of(label):
            containers = [_ended(status) for status in pod["status"]["containerStatuses"]]
            status = {"phase": "Succeeded", "containerStatuses": containers}
            self.api.must("PATCH", f"{manifests.path(pod)}/status", {"status": status}, MERGE_PATCH)

    def rest(self) -> None:
        """Wait until nothing has changed for REST seconds from now."""
        seen = -1
        while seen < (now := len(self._entries())):
            seen = now
            time.sleep(REST)

    def still(self, moment: str) -> None:
        """Store a moment, when nothing changes any more."""
        self.rest()
        self._keep(moment, self._entries())

    def when(self, moment: str, condition: Callable[[list[Object]], bool], seconds: float = 60) -> None:
        """Store the first moment at which a condition on the pods held, even if it has passed."""
        self.recording.wait(moment, lambda now: condition(list(now.now("Pod").values())), seconds)
        self.rest()
        entries = self._entries()
        pasts = (entries[: length + 1] for length in range(len(entries)))
        self._keep(moment, next(past for past in pasts if condition(list(state(past, "Pod").values()))))

    def take(self) -> Take:
        """Return the recording, once both adapters have sent all events."""
        seen = sorted((entry.kind, _VERBS[entry.change], entry.version) for entry in self._entries())
        until(lambda: self._received() == seen and len(self._events(REFERENCE)) == len(seen), 20)
        assert self._received() == seen, "the adapter did not tell what happened"
        assert len(self._events(REFERENCE)) == len(seen), "the modes differ"
        return Take(self._events(RESOURCE), self._events(REFERENCE), self._moments)

    def end(self) -> None:
        """Delete the namespace, and wait until it is gone."""
        super().end()
        home = f"/api/v1/namespaces/{self.namespace}"
        assert until(lambda: not self.api.request("GET", home).ok, 60), f"{self.namespace} stays"

    def _events(self, mode: str) -> list[Object]:
        return events(self._sink, mode, self.namespace)

    def _received(self) -> list[tuple[str, str, int]]:
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
        recorded = [entry for entry in self.recording.entries() if entry.kind in KINDS]
        return [entry for entry in recorded if entry.kind != others or entry.name == self._runtime]

    def _keep(self, moment: str, past: list[Entry]) -> None:
        objects = [_kept(one) for kind in KINDS for _, one in sorted(state(past, kind).items())]
        items = [self._home, *objects]
        self._moments.append({"apiVersion": "v1", "kind": "List", "moment": moment, "items": items})
        sys.stderr.write(f"  {moment}: {len(past)} changes, {len(items)} objects\n")


def add_node(cluster: RealCluster, name: str) -> None:
    """Add a node of 8 CPUs, 32Gi and 4 GPUs in zone z1."""
    controllers.add_node(cluster.api, name, labels={"topology.kubernetes.io/zone": "z1"})


def _kept(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def _named(namespace: Object) -> Object:
    """Return a Namespace with only its name, labels and status."""
    metadata = {name: namespace["metadata"][name] for name in ("name", "labels")}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "status": namespace["status"]}


def _ended(container: Object) -> Object:
    started = container["state"]["running"]["startedAt"]
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": started, "finishedAt": started}
    return {**container, "ready": False, "started": False, "state": {"terminated": ended}}
