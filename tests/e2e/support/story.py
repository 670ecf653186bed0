"""One story on the real cluster: its namespace, its nodes, its recording, and how it is told if it fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from muster.local.stories.laws import LAWS, min_count
from muster.local.stories.watching import Entry
from muster.replay.summary import gates, group_of
from tests.cluster import audit, controllers, manifests
from tests.cluster.api import MERGE_PATCH, Api
from tests.cluster.cluster import Cluster
from tests.cluster.processes import until
from tests.e2e.support import admission, rights
from tests.e2e.support.rights import Right
from tests.e2e.support.timeline import PATIENCE, Recording
from tests.e2e.support.writes import Write, users_objects_are_left_alone

Object = dict[str, Any]


class Story:
    """What a story can do and see.

    Attributes:
        api: the API, as the person who tells the story.
        namespace: a namespace of its own.
        recording: everything that happens in it.
    """

    def __init__(self, cluster: Cluster, namespace: str, *, opted_in: bool = True) -> None:
        self.api: Api = cluster.api
        self.namespace = namespace
        self._audit_log = cluster.audit_log
        self._began_at = audit.size(self._audit_log)
        self._roles_known_at = self._began_at
        self._refused: set[Right] = set()
        self._nodes: list[str] = []
        self._volumes: list[Object] = []
        labels = {"muster.dev/gang-jobs": "enabled"} if opted_in else {}
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
        manifests.apply(self.api, [home])
        minor = self.api.must("GET", "/version")["minor"]
        self.recording = Recording(self.api, namespace, f"1.{minor}")

    def add_nodes(self, count: int, *, cpu: int = 8, labels: Mapping[str, str] | None = None) -> None:
        """Adds nodes of so many CPUs; they go with the story."""
        for _ in range(count):
            name = f"{self.namespace}-{len(self._nodes)}"
            controllers.add_node(self.api, name, cpu=cpu, labels=dict(labels or {}))
            self._nodes.append(name)

    def add_volume(self, claim: str, size: str = "100Gi") -> None:
        """Makes a volume for a claim that somebody else will make; it goes with the story."""
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
        self._volumes += manifests.apply(self.api, [volume])

    def create(self, one: Object) -> Object:
        """Creates an object in the story's namespace."""
        placed = {**one, "metadata": {**one["metadata"], "namespace": self.namespace}}
        created: Object = self.api.must("POST", manifests.collection(placed), placed)
        return created

    def patch(self, one: Object, change: Object) -> Object:
        """Changes a created object by merge patch."""
        patched: Object = self.api.must("PATCH", manifests.path(one), change, MERGE_PATCH)
        return patched

    def delete(self, one: Object, propagation: str = "Background") -> None:
        """Deletes a created object."""
        self.api.must("DELETE", manifests.path(one), query={"propagationPolicy": propagation})

    def delete_job_and_then_its_pods(self, job: Object) -> None:
        """Deletes the only Job, which orphans all that it owns, and waits until its pods are gone as well."""
        self.delete(job, "Orphan")
        self.wait("the Job is gone", lambda now: not now.recording.now("Job"))
        for pod in self.pods():
            self.delete({"apiVersion": "v1", "kind": "Pod", **pod})
        self.wait("the pods are gone", lambda now: not now.pods())

    @contextlib.contextmanager
    def interrupted(self) -> Iterator[None]:
        """Lets the API server be started anew in a block.

        The recording has what changed meanwhile as `Recording.interrupted` says it; what the server refuses
        until it knows its roles is no lack of them.
        """
        self._refused |= set(rights.refused(self._audited(self._roles_known_at)))
        with self.recording.interrupted():
            yield
            assert admission.roles_are_known(self.api), "it does not know its roles"
        self._roles_known_at = audit.size(self._audit_log)

    def wait(self, what: str, condition: Callable[[Story], bool], seconds: float = PATIENCE) -> None:
        """Waits until a condition on this story holds."""
        self.recording.wait(what, lambda _: condition(self), seconds)

    def wait_for(
        self, one: Object, what: str, condition: Callable[[Object], bool], seconds: float = PATIENCE
    ) -> None:
        """Waits until a condition on an object that the recording does not follow holds."""
        path = manifests.path(one)
        assert until(lambda: condition(self.api.must("GET", path)), seconds), (
            f"after {seconds} s still not: {what}"
        )

    def opt_out(self) -> None:
        """Takes the label away by which the namespace opted in; the next Job gets no mark."""
        change = {"metadata": {"labels": {"muster.dev/gang-jobs": None}}}
        self.api.must("PATCH", f"/api/v1/namespaces/{self.namespace}", change, MERGE_PATCH)
        assert until(lambda: not admission.marks_jobs(self.api, self.namespace), 30)

    def pods(self) -> list[Object]:
        """Returns the pods that exist."""
        return list(self.recording.now("Pod").values())

    def members(self, group: str) -> list[Object]:
        """Returns the pods that name a PodGroup and have not ended."""
        pods = [pod for pod in self.pods() if group_of(pod) == group]
        return [pod for pod in pods if pod["status"].get("phase") not in ("Succeeded", "Failed")]

    def gates(self, pod: Object) -> set[str]:
        """Returns the names of a pod's scheduling gates."""
        return gates(pod)

    def ungrouped(self) -> list[Object]:
        """Returns the running pods that name no PodGroup."""
        running = [pod for pod in self.pods() if pod["status"].get("phase") == "Running"]
        return [pod for pod in running if not group_of(pod)]

    def group_name(self, pod: Object) -> str:
        """Returns the PodGroup that a pod names; empty without one."""
        return group_of(pod)

    def running(self) -> int:
        """Returns how many pods run."""
        return sum(pod["status"].get("phase") == "Running" for pod in self.pods())

    def groups(self) -> dict[str, Object]:
        """Returns the PodGroups that exist, by name."""
        return self.recording.now("PodGroup")

    def group(self, mark: str) -> Object:
        """Returns the one PodGroup of a mark, as ``<owner>-<mark>-<uid8>`` says it."""
        found = [
            group for name, group in self.groups().items() if name.rsplit("-", 1)[0].endswith(f"-{mark}")
        ]
        assert len(found) == 1, f"{len(found)} PodGroups of {mark}: {sorted(self.groups())}"
        return found[0]

    def finish_pods(self, pods: list[Object], outcome: str = "Succeeded") -> None:
        """Lets running pods succeed or fail."""
        change = {"metadata": {"annotations": {"muster.dev/test-outcome": outcome}}}
        for pod in pods:
            self.patch({"apiVersion": "v1", "kind": "Pod", **pod}, change)

    def policy(self, mark: str) -> Object:
        """Returns the scheduling policy of the PodGroup of a mark."""
        policy: Object = self.group(mark)["spec"]["schedulingPolicy"]
        return policy

    def templates(self) -> dict[str, Object]:
        """Returns the scheduling policy of each PodGroup template of the only Workload."""
        (workload,) = self.recording.now("Workload").values()
        return {one["name"]: one["schedulingPolicy"] for one in workload["spec"]["podGroupTemplates"]}

    def running_of(self, mark: str) -> list[Object]:
        """Returns the running pods with a mark."""
        pods = [pod for pod in self.pods() if pod["metadata"]["labels"].get("muster.dev/group") == mark]
        return [pod for pod in pods if pod["status"].get("phase") == "Running"]

    def pods_of_replicated_jobs(self, jobset: str) -> dict[str, int]:
        """Returns how many pods each replicatedJob of a JobSet has."""
        jobs = self.recording.now("JobSet")[jobset]["spec"]["replicatedJobs"]
        return {job["name"]: job["replicas"] * job["template"]["spec"]["parallelism"] for job in jobs}

    def condition(self, kind: str, name: str, of_type: str) -> str:
        """Returns the status of a condition of an owner, empty without it; Jobs' have a prefix."""
        return self._condition(kind, name, of_type).get("status", "")

    def reason(self, kind: str, name: str, of_type: str) -> str:
        """Returns the reason of a condition of an owner, empty without it."""
        return self._condition(kind, name, of_type).get("reason", "")

    def messages(self, reason: str) -> str:
        """Returns what the Events of a reason say, whoever wrote them; empty without one."""
        events = self.recording.now("Event").values()
        return "\n".join(one["message"] for one in events if one["reason"] == reason)

    def leftovers(self) -> list[str]:
        """Returns what exists of everything that a job has or gets."""
        kinds = ("Workload", "PodGroup", "Pod", "Job", "JobSet")
        return [f"{kind} {name}" for kind in kinds for name in self.recording.now(kind)]

    def _audited(self, since: int) -> list[Object]:
        """Returns the audit events of Muster's service accounts from a place in the log on."""
        return audit.events_since(self._audit_log, since)

    def _condition(self, kind: str, name: str, of_type: str) -> dict[str, str]:
        status = self.recording.now(kind).get(name, {}).get("status") or {}
        conditions: list[dict[str, str]] = status.get("conditions") or []
        found = {one["type"].removeprefix("muster.dev/"): one for one in conditions}
        return found.get(of_type, {})

    def writes(self) -> list[Write]:
        """Returns what Muster wrote in this namespace since the story began, refused requests included."""
        return [_write(event) for event in self._audited(self._began_at) if _of(event, self.namespace)]

    def breaches(self) -> list[str]:
        """Returns how the laws of every story were broken."""
        entries = self.recording.entries()
        found = [f"{law.__name__}: {breach}" for law in LAWS for breach in law(entries)]
        left_alone = users_objects_are_left_alone
        found += [f"{left_alone.__name__}: {breach}" for breach in left_alone(self.writes())]
        refused = self._refused | set(rights.refused(self._audited(self._roles_known_at)))
        return found + [f"RBAC refused {right}" for right in sorted(refused)]

    def end(self) -> None:
        """Takes away the namespace and the nodes."""
        self.recording.stop()
        self.api.must("DELETE", f"/api/v1/namespaces/{self.namespace}")
        for node in self._nodes:
            self.api.must("DELETE", f"/api/v1/nodes/{node}")
        for volume in self._volumes:
            self.api.must("DELETE", manifests.path(volume))

    def told(self) -> str:
        """Tells the story line by line: changes, the scheduler's messages, and Muster's writes after them."""
        lines = [line for entry in self.recording.entries() if (line := _line(entry, self.recording.began))]
        written = [
            f"{one.status} {one.writer}: {one.verb} {one.resource} {one.name}" for one in self.writes()
        ]
        return "\n".join([*lines, "", "Muster wrote:", *written])


_REVIEWS = "authorization.k8s.io"
"""Of questions what one may do, which are asked by `create` and store nothing."""


def _write(event: Object) -> Write:
    reference = event["objectRef"]
    subresource = f"/{reference['subresource']}" if "subresource" in reference else ""
    response = event.get("responseObject") or {}
    return Write(
        writer=event["user"]["username"].rsplit(":", 1)[1],
        verb=event["verb"],
        resource=reference["resource"] + subresource,
        namespace=reference.get("namespace", ""),
        name=reference.get("name") or response.get("metadata", {}).get("name", ""),
        status=event.get("responseStatus", {}).get("code", 0),
        request=event.get("requestObject") or {},
    )


def _of(event: Object, namespace: str) -> bool:
    """Whether an audit event is a write in a namespace, or in no namespace at all (runtimes)."""
    about = event.get("objectRef", {})
    is_write = event["verb"] not in ("get", "list", "watch") and about.get("apiGroup") != _REVIEWS
    return is_write and bool(about.get("namespace", namespace) == namespace)


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
        f"{one['type']}={one['status']}/{one.get('reason', '')}" for one in status.get("conditions") or []
    ]
    if entry.kind == "Pod":
        node = body["spec"].get("nodeName", "unbound")
        going = "going" if "deletionTimestamp" in body["metadata"] else ""
        details = [status.get("phase", ""), node, group_of(body), *sorted(gates(body)), going]
    if entry.kind == "PodGroup":
        details.insert(0, f"minCount {min_count(body)}")
    return f"{prefix} {entry.name} {' '.join(detail for detail in details if detail)}"
