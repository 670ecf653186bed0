"""One story on a real cluster: its namespace, nodes and recording, and its timeline as text if it fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from time import monotonic, sleep
from typing import Any

from muster.local.stories.laws import LAWS, min_count
from muster.local.stories.watching import Entry
from muster.objects.resources import JOBS, JOBSETS, PODS, TRAINJOBS
from muster.replay.summary import gates, group_of
from tests.cluster import audit, controllers, manifests
from tests.cluster.api import MERGE_PATCH, KubernetesApi, Refused
from tests.cluster.cluster import RealCluster
from tests.cluster.knative import release
from tests.cluster.processes import until
from tests.contract.bodies import priority_class
from tests.e2e.support import admission, writes
from tests.e2e.support.timeline import PATIENCE, StoryRecording
from tests.e2e.support.writes import SHARED, Write, users_objects_are_left_alone

Object = dict[str, Any]
OWNERS = (TRAINJOBS, JOBSETS, JOBS, PODS)
"""The kinds whose objects, once deleted, leave nothing of a story."""
RUNTIME_NOT_KNOWN = "must be created before the TrainJob is created"
"""The Trainer's webhook says so, also while its cache has not seen a runtime that was just created."""


class RealStory:
    """The actions and queries of a story.

    Attributes:
        api: client as administrator.
        namespace: the story's own namespace.
        recording: all changes in the namespace.
    """

    def __init__(self, cluster: RealCluster, namespace: str, *, opted_in: bool = True) -> None:
        self.api: KubernetesApi = cluster.api
        self.namespace = namespace
        self._audit_log = cluster.audit_log
        self._keeps_namespace = cluster.knative is not None
        self._began_at = audit.size(self._audit_log)
        self._roles_known_at = self._began_at
        self._refused: set[str] = set()
        self._nodes: list[str] = []
        self._of_the_cluster: list[Object] = []
        labels = {"muster.dev/gang-jobs": "enabled"} if opted_in else {}
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
        manifests.apply(self.api, [home])
        minor = self.api.must("GET", "/version")["minor"]
        self.recording = StoryRecording(self.api, namespace, f"1.{minor}")

    def add_nodes(self, count: int, *, cpu: int = 8, labels: Mapping[str, str] | None = None) -> None:
        """Add nodes with this number of CPUs; they are deleted at the end of the story."""
        for _ in range(count):
            name = f"{self.namespace}-{len(self._nodes)}"
            controllers.add_node(self.api, name, cpu=cpu, labels=dict(labels or {}))
            self._nodes.append(name)

    def add_volume(self, claim: str, size: str = "100Gi") -> None:
        """Create a PersistentVolume for a claim that is created later; it is deleted with the story."""
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"{self.namespace}-{claim}"},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
                "hostPath": {"path": "/nowhere"},
                "claimRef": {"namespace": self.namespace, "name": claim},
            },
        }
        self._of_the_cluster += manifests.apply(self.api, [volume])

    def create_for_cluster(self, obj: Object) -> Object:
        """Create an object of the whole cluster, named after the namespace too; the story deletes it."""
        name = f"{self.namespace}-{obj['metadata']['name']}"
        created: Object = self.api.must(
            "POST", manifests.collection(obj), {**obj, "metadata": {**obj["metadata"], "name": name}}
        )
        self._of_the_cluster.append(created)
        return created

    def priority_class(self, name: str, value: int, **fields: Any) -> str:
        """Create a PriorityClass, wait until pods may have it, and return its name."""
        created = self.create_for_cluster(priority_class(name, value, **fields))["metadata"]["name"]
        assert admission.class_is_known(self.api, self.namespace, created)
        return str(created)

    def create(self, obj: Object) -> Object:
        """Create an object in the namespace; a TrainJob once the Trainer's webhook knows its runtime."""
        placed = {**obj, "metadata": {**obj["metadata"], "namespace": self.namespace}}
        end = monotonic() + PATIENCE
        while True:
            try:
                created: Object = self.api.must("POST", manifests.collection(placed), placed)
            except Refused as refused:
                if RUNTIME_NOT_KNOWN not in str(refused) or monotonic() > end:
                    raise
                sleep(0.1)
            else:
                return created

    def patch(self, obj: Object, change: Object) -> Object:
        """Change an object by merge patch."""
        patched: Object = self.api.must("PATCH", manifests.path(obj), change, MERGE_PATCH)
        return patched

    def delete(self, obj: Object, propagation: str = "Background") -> None:
        """Delete an object."""
        self.api.must("DELETE", manifests.path(obj), query={"propagationPolicy": propagation})

    def delete_job_and_then_its_pods(self, job: Object) -> None:
        """Delete the only Job with orphaning, then its pods, and wait until they are gone."""
        self.delete(job, "Orphan")
        self.wait("the Job is gone", lambda now: not now.recording.now("Job"))
        for pod in self.pods():
            self.delete({"apiVersion": "v1", "kind": "Pod", **pod})
        self.wait("the pods are gone", lambda now: not now.pods())

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """Allow the API server to be restarted inside the block.

        `StoryRecording.interrupted` records what changed meanwhile. Refusals of a server that has not read
        its roles yet do not count as missing rights.
        """
        self._refused |= set(writes.refused(self._audited(self._roles_known_at)))
        with self.recording.interrupted():
            yield
            assert admission.roles_are_known(self.api), "it does not know its roles"
        self._roles_known_at = audit.size(self._audit_log)

    def wait(self, what: str, condition: Callable[[RealStory], bool], seconds: float = PATIENCE) -> None:
        """Wait until a condition on this story holds."""
        self.recording.wait(what, lambda _: condition(self), seconds)

    def wait_for_reason(
        self, kind: str, name: str, of_type: str, reason: str, seconds: float = PATIENCE
    ) -> None:
        """Wait until a condition of an owner has a reason."""
        what = f"{of_type} of {kind} {name} is {reason}"
        self.wait(what, lambda now: now.reason(kind, name, of_type) == reason, seconds)

    def wait_for_true(self, kind: str, name: str, of_type: str, seconds: float = PATIENCE) -> None:
        """Wait until a condition of an owner is True."""
        what = f"{of_type} of {kind} {name} is True"
        self.wait(what, lambda now: now.condition(kind, name, of_type) == "True", seconds)

    def wait_for(
        self, obj: Object, what: str, condition: Callable[[Object], bool], seconds: float = PATIENCE
    ) -> None:
        """Wait until a condition holds on an object whose kind is not recorded."""
        path = manifests.path(obj)
        assert until(lambda: condition(self.api.must("GET", path)), seconds), (
            f"after {seconds} s still not: {what}"
        )

    def hang(self, pods: list[Object], value: str | None = "true") -> None:
        """Let pods stay in termination until this is called with None."""
        for pod in pods:
            change = {"metadata": {"annotations": {"muster.dev/test-hangs": value}}}
            self.patch({"apiVersion": "v1", "kind": "Pod", **pod}, change)

    def nodes_of_pods(self) -> dict[str, str]:
        """Return the node of every pod that is on one, by the pod's UID."""
        nodes = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in self.pods()}
        return {uid: node for uid, node in nodes.items() if node}

    def opt_out(self) -> None:
        """Remove the namespace's label, and wait until new Jobs are no longer labelled."""
        change = {"metadata": {"labels": {"muster.dev/gang-jobs": None}}}
        self.api.must("PATCH", f"/api/v1/namespaces/{self.namespace}", change, MERGE_PATCH)
        assert until(lambda: not admission.labels_jobs(self.api, self.namespace), 30)

    def pods(self) -> list[Object]:
        """Return the pods that exist, without those of Knative's adapters, which may be in the namespace."""
        pods = self.recording.now("Pod").values()
        return [pod for pod in pods if release.NODE_LABEL not in pod["spec"].get("nodeSelector", {})]

    def members(self, group: str) -> list[Object]:
        """Return the pods that name a PodGroup and have not ended."""
        pods = [pod for pod in self.pods() if group_of(pod) == group]
        return [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]

    def gates(self, pod: Object) -> set[str]:
        """Return the names of a pod's scheduling gates."""
        return gates(pod)

    def ungrouped(self) -> list[Object]:
        """Return the running pods without a schedulingGroup."""
        running = [pod for pod in self.pods() if pod["status"].get("phase") == "Running"]
        return [pod for pod in running if not group_of(pod)]

    def group_name(self, pod: Object) -> str:
        """Return the name of the PodGroup in a pod's schedulingGroup; empty without one."""
        return group_of(pod)

    def running(self) -> int:
        """Return the number of running pods."""
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods())

    def groups(self) -> dict[str, Object]:
        """Return the PodGroups that exist, by name."""
        return self.recording.now("PodGroup")

    def group(self, label: str) -> Object:
        """Return the only PodGroup of a group label, by its name ``<owner>-<group label>-<uid8>``."""
        groups = [
            group for name, group in self.groups().items() if name.rsplit("-", 1)[0].endswith(f"-{label}")
        ]
        assert len(groups) == 1, f"{len(groups)} PodGroups of {label}: {sorted(self.groups())}"
        return groups[0]

    def finish_pods(self, pods: list[Object], outcome: str = "Succeeded") -> None:
        """Let running pods succeed or fail, by the annotation that KWOK reads."""
        change = {"metadata": {"annotations": {"muster.dev/test-outcome": outcome}}}
        for pod in pods:
            self.patch({"apiVersion": "v1", "kind": "Pod", **pod}, change)

    def policy(self, label: str) -> Object:
        """Return the scheduling policy of the PodGroup of a group label."""
        policy: Object = self.group(label)["spec"]["schedulingPolicy"]
        return policy

    def templates(self) -> dict[str, Object]:
        """Return the scheduling policy of each PodGroup template of the only Workload."""
        (workload,) = self.recording.now("Workload").values()
        return {
            template["name"]: template["schedulingPolicy"]
            for template in workload["spec"]["podGroupTemplates"]
        }

    def running_of(self, label: str) -> list[Object]:
        """Return the running pods with a group label."""
        pods = [pod for pod in self.pods() if pod["metadata"]["labels"].get("muster.dev/group") == label]
        return [pod for pod in pods if pod["status"].get("phase") == "Running"]

    def pods_of_replicated_jobs(self, jobset: str) -> dict[str, int]:
        """Return the number of pods of each replicatedJob of a JobSet."""
        jobs = self.recording.now("JobSet")[jobset]["spec"]["replicatedJobs"]
        return {job["name"]: job["replicas"] * job["template"]["spec"]["parallelism"] for job in jobs}

    def condition(self, kind: str, name: str, of_type: str) -> str:
        """Return the status of an owner's condition, empty without it; `of_type` without Jobs' prefix."""
        return self._condition(kind, name, of_type).get("status", "")

    def reason(self, kind: str, name: str, of_type: str) -> str:
        """Return the reason of an owner's condition, empty without it."""
        return self._condition(kind, name, of_type).get("reason", "")

    def message(self, kind: str, name: str, of_type: str) -> str:
        """Return the message of an owner's condition, empty without it."""
        return self._condition(kind, name, of_type).get("message", "")

    def messages(self, reason: str) -> str:
        """Return the messages of all Events with a reason, one a line."""
        events = self.recording.now("Event").values()
        return "\n".join(event["message"] for event in events if event["reason"] == reason)

    def leftovers(self) -> list[str]:
        """Return all Workloads, PodGroups, Pods, Jobs and JobSets that still exist."""
        kinds = ("Workload", "PodGroup", "Job", "JobSet")
        left = [f"{kind} {name}" for kind in kinds for name in self.recording.now(kind)]
        return [*left, *(f"Pod {pod['metadata']['name']}" for pod in self.pods())]

    def _audited(self, since: int) -> list[Object]:
        """Return the audit events of Muster's service accounts after an offset in the log."""
        return audit.events_since(self._audit_log, since)

    def _condition(self, kind: str, name: str, of_type: str) -> dict[str, str]:
        status = self.recording.now(kind).get(name, {}).get("status") or {}
        conditions: list[dict[str, str]] = status.get("conditions") or []
        by_type = {condition["type"].removeprefix("muster.dev/"): condition for condition in conditions}
        return by_type.get(of_type, {})

    def writes(self) -> list[Write]:
        """Return Muster's writes in this namespace since the story began, including refused ones."""
        return [_write(event) for event in self._audited(self._began_at) if _of(event, self.namespace)]

    def breaches(self) -> list[str]:
        """Return a line for each breach of a law and each request that RBAC or a policy refused."""
        entries = self.recording.entries()
        breaches = [f"{law.__name__}: {breach}" for law in LAWS for breach in law(entries)]
        left_alone = users_objects_are_left_alone
        breaches += [f"{left_alone.__name__}: {breach}" for breach in left_alone(self.writes())]
        refused = self._refused | set(writes.refused(self._audited(self._roles_known_at)))
        breaches += [f"RBAC refused {right}" for right in sorted(refused)]
        return breaches + sorted(writes.denied(self._audited(self._began_at)))

    def end(self) -> None:
        """Stop recording; delete the namespace, nodes and other objects of the cluster.

        With Knative the namespace stays, empty: when it goes, all adapters are replaced, in the next story.
        """
        self.recording.stop()
        if self._keeps_namespace:
            self._empty_namespace()
        else:
            self.api.must("DELETE", f"/api/v1/namespaces/{self.namespace}")
        for node in self._nodes:
            self.api.must("DELETE", f"/api/v1/nodes/{node}")
        for obj in self._of_the_cluster:
            self.api.must("DELETE", manifests.path(obj))

    def _empty_namespace(self) -> None:
        for resource in OWNERS:
            path = resource.path(namespace=self.namespace)
            # 404: the kind is not served.
            self.api.request("DELETE", path, query={"propagationPolicy": "Background"})

    def as_text(self) -> str:
        """Return the timeline: a line for each change and each Event, then Muster's writes."""
        lines = [line for entry in self.recording.entries() if (line := _line(entry, self.recording.began))]
        written = [
            f"{write.status} {write.writer}: {write.verb} {write.resource} {write.name}"
            for write in self.writes()
        ]
        return "\n".join([*lines, "", "Muster wrote:", *written])


_REVIEWS = "authorization.k8s.io"
"""The API group of access reviews, which are created but not stored."""


def _writer(event: Object) -> str:
    """Return the service account; of the account that all functions share, the step that its client named."""
    account = str(event["user"]["username"].rsplit(":", 1)[1])
    return str(event["userAgent"]).removeprefix("muster-") if account == SHARED else account


def _write(event: Object) -> Write:
    reference = event["objectRef"]
    subresource = f"/{reference['subresource']}" if "subresource" in reference else ""
    response = event.get("responseObject") or {}
    return Write(
        writer=_writer(event),
        verb=event["verb"],
        resource=reference["resource"] + subresource,
        namespace=reference.get("namespace", ""),
        name=reference.get("name") or response.get("metadata", {}).get("name", ""),
        status=event.get("responseStatus", {}).get("code", 0),
        request=event.get("requestObject") or {},
    )


def _of(event: Object, namespace: str) -> bool:
    """Return whether an audit event is a write in a namespace, or of a cluster-scoped object (runtimes)."""
    reference = event.get("objectRef", {})
    is_write = event["verb"] not in ("get", "list", "watch") and reference.get("apiGroup") != _REVIEWS
    return is_write and bool(reference.get("namespace", namespace) == namespace)


def _line(entry: Entry, began: float) -> str:
    body = entry.object
    prefix = f"{entry.at - began:7.2f} s  {entry.version:>6}  {entry.change:<8} {entry.kind}"
    if entry.kind == "Event":
        source = body.get("reportingComponent") or body.get("source", {}).get("component", "")
        return (
            f"{prefix} {source}: {body.get('reason')} {body['involvedObject']['name']}: {body.get('message')}"
        )
    status = body.get("status") or {}
    details = [
        f"{condition['type']}={condition['status']}/{condition.get('reason', '')}"
        for condition in status.get("conditions") or []
    ]
    if entry.kind == "Pod":
        node = body["spec"].get("nodeName", "unbound")
        going = "going" if "deletionTimestamp" in body["metadata"] else ""
        details = [status.get("phase", ""), node, group_of(body), *sorted(gates(body)), going]
    if entry.kind == "PodGroup":
        details.insert(0, f"minCount {min_count(body)}")
    return f"{prefix} {entry.name} {' '.join(detail for detail in details if detail)}"
