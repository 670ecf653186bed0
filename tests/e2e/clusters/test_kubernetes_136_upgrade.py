"""Kubernetes from 1.36.3 to 1.37.1 on one etcd: what happens to stored groups, and step 7 of install.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from muster.cli.check import Level, check_cluster
from muster.cluster.kubeconfig import client_of
from tests.cluster import kubectl, manifests
from tests.cluster.cluster import ClusterOptions, RealCluster
from tests.cluster.control_plane import Release
from tests.cluster.processes import until
from tests.docs.commands import ROOT, commands
from tests.e2e.conftest import RealStage, Stages
from tests.e2e.support import muster
from tests.e2e.support.owners import a_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
OPTIONS = ClusterOptions(release=Release("1.36"))
STEP = "## 7. Kubernetes from 1.36 to 1.37"
BEFORE, AFTER = "/apis/scheduling.k8s.io/v1alpha2", "/apis/scheduling.k8s.io/v1beta1"


def test_gangs_outlive_an_upgrade_before_which_their_groups_were_removed(
    stage: RealStage, stages: Stages, begin_story: Callable[..., RealStory]
) -> None:
    """First an administrator forgets it, and has to go back; then the documented order loses nothing."""
    story = begin_story()
    story.add_nodes(2)
    story.create(a_job("runs", pods=3, cpu=4))
    story.wait("three pods run", lambda now: now.running() == 3)
    story.create(a_job("waits", pods=3, cpu=3))
    story.wait_for_reason("Job", "waits", "PodGroupsScheduled", "Unschedulable")
    story.recording.stop()
    later = Later(stage.cluster, story)
    names, bound = later.groups(BEFORE), later.bound()
    stage.muster.stop()

    stages.switch(Release("1.37"))
    _nothing_is_listed_deleted_or_scheduled(later)
    assert later.bound() == bound

    stages.switch(OPTIONS.release)
    assert until(lambda: later.groups(BEFORE) == names and "alone" in later.running(), 60)
    _remove_as_the_document_says(stage.cluster)
    assert later.groups(BEFORE) == set()
    assert bound.items() <= later.bound().items()

    stages.switch(Release("1.37"))
    with muster.installed(stage.cluster, "cluster") as upgraded:
        upgraded.sweep()
        assert until(lambda: later.groups(AFTER) == names, 60)
        assert bound.items() <= later.bound().items()
        story.add_nodes(1)
        assert until(lambda: later.running() == {"runs": 3, "waits": 3, "alone": 1}, 60)
        story.finish_pods(later.pods("runs")[:1], "Failed")
        assert until(lambda: later.running()["runs"] == 3 and len(later.pods("runs")) == 4, 60)
        assert upgraded.idle()
        assert upgraded.dead_letters == []


def _nothing_is_listed_deleted_or_scheduled(later: Later) -> None:
    """One group that the new API server cannot read hides all, and kube-scheduler waits for its caches."""
    groups = later.path_of_groups(AFTER)
    assert until(lambda: "v1alpha2" in later.api.request("GET", groups).message, 60)
    assert later.api.request("DELETE", f"{groups}/{min(later.names)}").status == 500
    client = client_of(str(later.kubeconfig))
    (stored_groups,) = [finding for finding in check_cluster(client) if finding.about == "stored groups"]
    assert (stored_groups.level, "go back to it" in stored_groups.message) == (Level.FAIL, True)
    later.create_a_pod_without_a_group()
    assert not until(lambda: "alone" in later.running(), 10)


def _remove_as_the_document_says(cluster: RealCluster) -> None:
    triggers, *lines = [
        command for command in commands(ROOT / "docs/install.md", STEP) if command.program == "kubectl"
    ]
    assert triggers.words[-3:] == ("delete", "triggers", "--all"), "there are none here; Muster was stopped"
    *removing, showing, applying = lines
    assert applying.words[1] == "apply"
    for instruction in removing:
        kubectl.line(instruction.words, cluster.kubeconfig)
    assert kubectl.line(showing.words, cluster.kubeconfig) == ""


class Later:
    """What is in a story's namespace once its watches have ended; asked anew each time."""

    def __init__(self, cluster: RealCluster, story: RealStory) -> None:
        self.api = cluster.api
        self.kubeconfig = cluster.kubeconfig
        self.namespace = story.namespace
        self.names = set(story.groups())

    def path_of_groups(self, version: str) -> str:
        """Where the API server has the namespace's PodGroups."""
        return f"{version}/namespaces/{self.namespace}/podgroups"

    def groups(self, version: str) -> set[str]:
        """The names of the PodGroups; empty where they cannot be listed."""
        answer = self.api.request("GET", self.path_of_groups(version))
        return {item["metadata"]["name"] for item in answer.body["items"]} if answer.ok else set()

    def pods(self, prefix: str = "") -> list[dict[str, Any]]:
        """The pods whose names begin so."""
        pods = self.api.must("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]
        return [pod for pod in pods if pod["metadata"]["name"].startswith(prefix)]

    def bound(self) -> dict[str, str]:
        """The node of every pod that has one, by the pod's UID."""
        nodes = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in self.pods()}
        return {uid: node for uid, node in nodes.items() if node}

    def running(self) -> dict[str, int]:
        """How many pods run, by the first word of their names."""
        names = [
            pod["metadata"]["name"].partition("-")[0]
            for pod in self.pods()
            if pod["status"].get("phase") == "Running"
        ]
        return {name: names.count(name) for name in names}

    def create_a_pod_without_a_group(self) -> None:
        """One that has room."""
        container = {"name": "main", "image": "example.com/any", "resources": {"requests": {"cpu": "1"}}}
        metadata = {"name": "alone", "namespace": self.namespace}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
        self.api.must("POST", manifests.collection(pod), pod)
