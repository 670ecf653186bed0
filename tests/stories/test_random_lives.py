"""Random lives of owners: no pod waits, while there is room, unless PodGroupsReady says why."""

from __future__ import annotations

from random import Random

import pytest

from muster.objects.resources import by_kind
from muster.policy.sources.source import ANNOTATION
from muster.testing import RunningStack
from tests.support.builders import Object, a_job, a_jobset, a_replicated_job, a_trainjob, submitted

pytestmark = pytest.mark.usefixtures("in_process")

NODE = "workload: {groups: [{name: %s, schedulingPolicy: %s}]}"
TREE = "workload: {groups: [{name: tree, schedulingPolicy: %s, groups: [{name: leader}, {name: workers}]}]}"
BROKEN = ("workload: [", "workload: {groups: [{name: tree, groups: [{name: none}]}]}")
POLICIES = {
    "Job": ("", NODE % ("main", "{basic: {}}"), NODE % ("main", "{gang: {minCount: 2}}"), *BROKEN),
    "JobSet": (
        "",
        TREE % "{gang: {}}",
        TREE % "{gang: {minGroupCount: 1}}",
        "workload: {onScale: Flag}",
        *BROKEN,
    ),
    "TrainJob": ("", NODE % ("trainer", "{gang: {minCount: 1}}"), *BROKEN),
}
"""Policies by kind of owner; some are invalid."""


class Life:
    """What users do to one owner in a namespace of its own.

    Attributes:
        done: what they did, one line each.
    """

    def __init__(self, stack: RunningStack, kind: str, seed: int) -> None:
        self.stack, self.kind = stack, kind
        self.random = Random(f"{kind} {seed}")  # noqa: S311 - the same life in every run
        self.namespace = f"{kind.lower()}-{seed}"
        self.done: list[str] = []
        stack.create_namespace(self.namespace)
        self._create()

    @property
    def owner(self) -> Object:
        """The owner as it is stored now."""
        return next(body for body in self.stack.all(self.kind, self.namespace) if _is_root(body))

    def go_on(self) -> None:
        """Do one random thing."""
        groups = (self._delete_group, self._replace_group)
        self.random.choice((self._suspend, self._edit, self._recreate, self._delete_pod, *groups))()

    def resume(self) -> None:
        """Make the owner run."""
        self._patch({"spec": {"suspend": False}})

    def silent_pods(self) -> list[str]:
        """The pods that wait, though there is room, while PodGroupsReady is not False."""
        conditions = {
            condition["type"].removeprefix("muster.dev/"): condition["status"]
            for condition in self.owner.get("status", {}).get("conditions", ())
        }
        return [
            pod["metadata"]["name"]
            for pod in self.stack.all("Pod", self.namespace)
            if not pod["spec"].get("nodeName")
            and "deletionTimestamp" not in pod["metadata"]
            and conditions.get("PodGroupsReady") != "False"
        ]

    def _create(self) -> None:
        pods = self.random.randint(1, 3)
        replicas = self.random.randint(1, 2)
        owner = {
            "Job": a_job(pods=pods),
            "JobSet": a_jobset(
                a_replicated_job("leader", pods=1, replicas=replicas, label="leader"),
                a_replicated_job("workers", pods=pods, replicas=replicas, label="workers"),
            ),
            "TrainJob": a_trainjob(),
        }[self.kind]
        body = submitted(owner)
        policy = self.random.choice(POLICIES[self.kind])
        if policy:
            body["metadata"]["annotations"] = {ANNOTATION: policy}
        self.done.append(f"create {pods} pods, {replicas} replicas, {policy!r}")
        self.stack.create(body, self.namespace)

    def _suspend(self) -> None:
        self._patch({"spec": {"suspend": not self.owner["spec"].get("suspend")}})

    def _edit(self) -> None:
        policy = self.random.choice(POLICIES[self.kind]) or None
        self._patch({"metadata": {"annotations": {ANNOTATION: policy}}})

    def _recreate(self) -> None:
        uid = self.owner["metadata"]["uid"]
        self._delete(self.owner)
        self.stack.until("gone", lambda: uid not in map(_uid, self.stack.all(self.kind, self.namespace)))
        self._create()

    def _delete_pod(self) -> None:
        self._delete_one("Pod")

    def _delete_group(self) -> None:
        self._delete_one("Workload", "PodGroup", "CompositePodGroup")

    def _replace_group(self) -> None:
        group = self._delete_one("PodGroup", "CompositePodGroup")
        if group is None:
            return
        spec = group["spec"]
        if "minCount" in spec["schedulingPolicy"].get("gang", {}):
            spec["schedulingPolicy"]["gang"]["minCount"] = 50
        metadata = {"name": group["metadata"]["name"], "namespace": self.namespace}
        status = self._request("POST", group, "", {**group, "metadata": metadata, "spec": spec})
        self.done.append(f"create a user's {group['kind']} {metadata['name']}: {status}")

    def _delete_one(self, *kinds: str) -> Object | None:
        bodies = [body for kind in kinds for body in self.stack.all(kind, self.namespace)]
        if not bodies:
            return None
        body = self.random.choice(bodies)
        self._delete(body)
        return body

    def _delete(self, body: Object) -> None:
        options = {"propagationPolicy": self.random.choice(("Background", "Foreground"))}
        status = self._request("DELETE", body, body["metadata"]["name"], options)
        self.done.append(f"delete {body['kind']} {body['metadata']['name']}: {status}")

    def _patch(self, patch: Object) -> None:
        owner = self.owner
        status = self._request("PATCH", owner, owner["metadata"]["name"], patch)
        self.done.append(f"patch {patch}: {status}")

    def _request(self, method: str, body: Object, name: str, content: Object) -> int:
        """Send a request about an object, or about those of its kind; the API server may refuse it."""
        path = by_kind(body["apiVersion"], body["kind"]).path(name, self.namespace)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        return self.stack.client.raw(method, path, body=content, content_type=kind)[0]


def _uid(body: Object) -> str:
    return str(body["metadata"]["uid"])


def _is_root(body: Object) -> bool:
    return not body["metadata"].get("ownerReferences")


@pytest.mark.parametrize("seed", range(3))
def test_no_pod_waits_without_a_reason(seed: int) -> None:
    """After ten random things that users may do in their namespaces; no function fails by a bug."""
    with RunningStack() as stack:
        lives = [Life(stack, kind, seed) for kind in POLICIES]
        for number in range(10):
            for life in lives:
                life.go_on()
            if number % 2:
                stack.settle()
        for life in lives:
            life.resume()

        def are_explained() -> bool:
            stack.settle()
            stack.sweep()
            return not any(life.silent_pods() for life in lives)

        try:
            stack.until("each pod that waits has a reason", are_explained)
        except AssertionError as error:
            said = [line for life in lives for line in (life.namespace, *life.silent_pods(), *life.done)]
            raise AssertionError("\n".join((str(error), *said))) from error
        assert [activity for activity in stack.activities if activity.outcome == "bug"] == []
