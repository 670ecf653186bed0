"""mark_runtime on API servers: it removes only the fields that managedFields shows as its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from functions.mark_runtime.function.step import STEP
from muster.cluster import execute
from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import client_of
from muster.cluster.versioned import Versioned
from muster.objects.meta import KubernetesObject
from muster.objects.patches import PatchType
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES
from muster.policy.model import Plan
from muster.policy.reasons import Reason
from muster.policy.sources.source import ANNOTATION
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.controllers import shipped_runtime
from tests.cluster import cluster
from tests.support.builders import NOW

NAME = "marked-by-muster"
GROUP = "muster.dev/group"


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    """The embedded API server, then Kubernetes 1.37.1."""
    if request.param == "embedded":
        with ApiServer() as server:
            server.load(resource_definitions())
            yield Client.for_server(server.url)
        return
    made: cluster.RealCluster = request.getfixturevalue("bare_137")
    real = client_of(str(made.kubeconfig))
    yield real
    real.delete(CLUSTER_TRAINING_RUNTIMES, NAME)


class Runtime:
    """The runtime torchtune under another name, and the changes that users make to it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        body = shipped_runtime("torchtune-qwen2.5-1.5b")
        body["metadata"] = {"name": NAME}
        client.create(CLUSTER_TRAINING_RUNTIMES, body, manager="kubectl-create")

    def annotate(self, policy: str | None) -> None:
        """Set the policy annotation like `kubectl annotate`; None removes it."""
        change = {"metadata": {"annotations": {ANNOTATION: policy}}}
        self._client.patch(
            CLUSTER_TRAINING_RUNTIMES, NAME, "", change, patch=PatchType.MERGE, manager="kubectl-annotate"
        )

    def relabel(self, name: str, group: str) -> None:
        """Edit the label of one pod template as a user."""
        body = self.read()
        _templates(body)[name].setdefault("metadata", {}).setdefault("labels", {})[GROUP] = group
        self._client.replace(CLUSTER_TRAINING_RUNTIMES, body, manager="kubectl-edit")

    def look(self) -> str:
        """Run mark_runtime once, and return its decision."""
        subject = KubernetesObject.read(self.read()).ref
        seen = Versioned(self._client)
        decision = STEP.plan(STEP.observe(seen, subject), NOW)
        if isinstance(decision, Plan):
            execute.in_order(seen, decision, STEP.manager)
        return decision.reason

    def groups(self) -> dict[str, str | None]:
        """Return the group label of each replicatedJob."""
        return {
            name: ((template.get("metadata") or {}).get("labels") or {}).get(GROUP)
            for name, template in _templates(self.read()).items()
        }

    def schedulers(self) -> set[str | None]:
        """Return the schedulerNames of the pod templates."""
        return {template["spec"].get("schedulerName") for template in _templates(self.read()).values()}

    def read(self) -> dict[str, Any]:
        """Return the stored runtime."""
        body = self._client.get(CLUSTER_TRAINING_RUNTIMES, NAME)
        assert body is not None
        return body


@pytest.fixture
def runtime(client: Client) -> Runtime:
    """A runtime of two initializers and a trainer."""
    return Runtime(client)


ALL = {"dataset-initializer": "dataset-initializer", "model-initializer": "model-initializer"}


def test_group_labels_are_added_and_removed_with_the_policy(runtime: Runtime) -> None:
    """The first run labels, the second does nothing; without a policy the next run restores the runtime."""
    before = runtime.read()["spec"]
    assert runtime.look() == Reason.NOT_MARKED
    runtime.annotate("workload: {}")
    assert runtime.look() == Reason.RUNTIME_MARKED
    assert runtime.groups() == {**ALL, "node": "trainer"}
    assert runtime.look() == Reason.UP_TO_DATE
    runtime.annotate(None)
    assert runtime.look() == Reason.RUNTIME_MARKED
    assert runtime.groups() == {**dict.fromkeys(ALL), "node": None}
    assert runtime.look() == Reason.NOT_MARKED
    assert _without_empty(runtime.read()["spec"]) == _without_empty(before)


def test_a_label_changed_by_a_user_is_owned_by_the_user(runtime: Runtime) -> None:
    """The API server makes the user its field manager, so that it stays when the policy is removed."""
    runtime.annotate("workload: {}")
    runtime.look()
    runtime.relabel("node", "mine")
    assert runtime.look() == Reason.UP_TO_DATE
    runtime.annotate(None)
    runtime.look()
    assert runtime.groups() == {**dict.fromkeys(ALL), "node": "mine"}


def test_kai_and_back(runtime: Runtime) -> None:
    """With kaiScheduler the runtime has KAI's labels and schedulerName; with workload group labels again."""
    runtime.annotate("workload: {}")
    runtime.look()
    runtime.annotate("kaiScheduler: {queue: team-a}")
    assert runtime.look() == Reason.RUNTIME_MARKED
    assert set(runtime.groups().values()) == {None}
    assert runtime.schedulers() == {"kai-scheduler"}
    metadata = runtime.read()["spec"]["template"]["metadata"]
    assert metadata["labels"] == {"kai.scheduler/queue": "team-a"}
    assert metadata["annotations"] == {"kai.scheduler/batch-min-member": "1"}
    runtime.annotate("workload: {}")
    runtime.look()
    assert runtime.schedulers() == {None}
    assert runtime.groups() == {**ALL, "node": "trainer"}


def _templates(runtime: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the pod template of each replicatedJob."""
    entries = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return {entry["name"]: entry["template"]["spec"]["template"] for entry in entries}


def _without_empty(data: Any) -> Any:
    """Return an object without empty maps, which are equal to absent ones."""
    if isinstance(data, list):
        return [_without_empty(template) for template in data]
    if not isinstance(data, dict):
        return data
    kept = {key: _without_empty(value) for key, value in data.items()}
    return {key: value for key, value in kept.items() if value != {} and value is not None}
