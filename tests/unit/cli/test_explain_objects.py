"""`muster explain`: what an owner waits for, other objects than owners, and files as applied to a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support import builders as b
from tests.support.runtimes import a_runtime
from tests.unit.cli.conftest import Muster, assert_names

GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"
SINCE = "2026-11-21T08:00:00Z"
REFUSED = {"muster.dev/fallback": 'RefusedByApi: podgroups "x" is forbidden: exceeded quota'}
NO_ROOM = "0/3 nodes are available"

Loaded = Callable[..., list[str]]


@pytest.fixture(name="kubeconfig")
def _kubeconfig(tmp_path: Path) -> Any:
    """An embedded API server: the path of its kubeconfig and what loads objects into it."""
    with ApiServer() as server:
        server.load([*resource_definitions(), b.a_namespace()])
        path = tmp_path / "kubeconfig"
        path.write_text(server.kubeconfig())
        yield str(path), server.load


@pytest.fixture(name="lines")
def _lines(muster: Muster, kubeconfig: Any) -> Callable[[str, list[Any]], list[str]]:
    """Explain an object of a cluster that has some objects; the lines that were printed."""

    def explain(target: str, objects: list[Any]) -> list[str]:
        path, load = kubeconfig
        load(objects)
        result = muster("explain", *target.split(), "-n", "team-a", "--kubeconfig", path)
        assert result.exit_code == 0, result.output
        return [line.strip() for line in result.stdout.splitlines()]

    return explain


def a_condition(kind: str, reason: str, message: str) -> b.Modifier:
    """A condition with status False since eight o'clock."""

    def add(body: Any) -> None:
        conditions = body.setdefault("status", {}).setdefault("conditions", [])
        condition = {"type": kind, "status": "False", "reason": reason, "message": message}
        conditions.append(condition | {"lastTransitionTime": SINCE})

    return add


def a_member(*modifiers: b.Modifier) -> Any:
    """The first pod of the Job, in its group."""
    return b.a_pod(b.a_job(), 0, b.stamped(GROUP), b.named("llama-0"), *modifiers)


def unlabelled(pod: Any) -> None:
    """Remove the group label of a pod."""
    del pod["metadata"]["labels"]["muster.dev/group"]


def one(lines: list[str], beginning: str) -> str:
    """The only line that begins so."""
    (line,) = (line for line in lines if line.startswith(beginning))
    return line


REFUSAL = a_condition("PodGroupInitiallyScheduled", "Unschedulable", NO_ROOM)
UNGATED = b.with_spec(schedulingGates=[])
WAITS = a_condition("muster.dev/PodGroupsScheduled", "Unschedulable", "0 of 1 groups scheduled")


def test_a_job_that_waits_says_why_and_since_when(lines: Any) -> None:
    """In the words of its conditions, from its groups and pods as they are."""
    printed = lines("job/llama", [b.a_job(WAITS), b.a_pod_group(GROUP, REFUSAL), a_member(UNGATED)])
    scheduled = one(printed, "PodGroupsScheduled: ")
    assert_names(scheduled, "Unschedulable", SINCE, NO_ROOM)
    assert one(printed, "PodGroupsReady: ").startswith("PodGroupsReady: PodGroupsExist")


def test_a_job_that_is_not_grouped_says_what_its_pods_wait_for(lines: Any) -> None:
    """The scheduler's answer about the first pod without a node."""
    pod = b.a_pod(b.a_job(label=None), 0, b.unstamped, UNGATED, b.named("llama-0"))
    a_condition("PodScheduled", "Unschedulable", NO_ROOM)(pod)
    printed = lines("job/llama", [b.a_job(label=None), pod])
    line = one(printed, "pods: ")
    assert_names(line, "Unschedulable", SINCE, "llama-0", NO_ROOM)


def test_with_hold_the_pods_keep_their_gate(muster: Muster, filed: Any) -> None:
    """A policy that cannot be used, with onFailure Hold: no fallback PodGroups are promised."""
    policy = {"muster.dev/pod-group-policy": "workload: {onFailure: Hold, groups: [{name: x, minCount: 2}]}"}
    path = filed("job.yaml", b.a_job(b.annotated(policy)))
    text = muster("explain", path).stdout
    one([line.strip() for line in text.splitlines()], "its pods keep their gate")
    assert "fallback" not in text
    (data,) = json.loads(muster("explain", path, "-o", "json").stdout)
    assert data["failure"]["held"]
    assert data["failure"]["reason"] == "InvalidPolicy"


PODS = [
    pytest.param([a_member(b.gated(GATE))], [f"PodGroup {GROUP}", "does not exist"], id="gated"),
    pytest.param(
        [
            b.a_pod_group(GROUP, REFUSAL),
            a_member(UNGATED, a_condition("PodScheduled", "Unschedulable", NO_ROOM)),
        ],
        [f"PodGroup {GROUP}: gang of 2; Unschedulable: {NO_ROOM}"],
        id="refused by the scheduler",
    ),
    pytest.param(
        [b.a_pod_group(GROUP, b.annotated(REFUSED), min_count=None), a_member(UNGATED, b.bound)],
        ["basic, no gang", "RefusedByApi"],
        id="in a fallback PodGroup, on a node",
    ),
    pytest.param([a_member(b.unstamped, unlabelled)], ["none", "muster.dev/group"], id="no group"),
]


@pytest.mark.parametrize(("objects", "group"), PODS)
def test_a_pod_is_explained_with_its_owner(lines: Any, objects: list[Any], group: list[str]) -> None:
    """Its group and what it waits for, then the Job that it belongs to."""
    printed = lines("pod llama-0", [b.a_job(), *objects])
    assert printed[0] == "Pod team-a/llama-0"
    assert_names(one(printed, "group: "), *group)
    assert "Job team-a/llama" in printed


def test_a_pod_group_is_explained_with_its_owner(lines: Any) -> None:
    """Its size, the scheduler's answer, and its pods."""
    objects = [b.a_job(), b.a_pod_group(GROUP, REFUSAL), a_member(UNGATED, b.bound)]
    printed = lines(f"podgroups.scheduling.k8s.io/{GROUP}", objects)
    facts = printed[: printed.index("")]
    assert facts[0] == f"PodGroup team-a/{GROUP}"
    assert facts[1:] == ["group: gang of 2", f"group: Unschedulable: {NO_ROOM}", "pods: 1, 1 with a node"]
    assert "Job team-a/llama" in printed


def a_config_map(namespace: str = "team-a", **data: str) -> Any:
    """The ConfigMap with the policy of a namespace, or of the administrator."""
    metadata = {"name": "muster-policy", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


CONFIG_MAPS = [
    pytest.param(
        a_config_map(policy="workload: {onScale: Flag}"), ["valid", "onScale", "team-a"], id="valid"
    ),
    pytest.param(
        a_config_map(policy="workload: {onScale: Sometimes}"),
        ["InvalidPolicy", "workload.onScale"],
        id="invalid",
    ),
    pytest.param(
        a_config_map("muster-system", policy="workload: {}", locked="{onFailure: Hold}"),
        ["all namespaces", "locked: valid"],
        id="the administrator's",
    ),
    pytest.param(a_config_map(locked="{onFailure: Hold}"), ["no effect"], id="locked fields elsewhere"),
    pytest.param(a_config_map(other="x"), ["neither"], id="no policy in it"),
]


@pytest.mark.parametrize(("config_map", "names"), CONFIG_MAPS)
def test_a_policy_alone(muster: Muster, filed: Any, config_map: Any, names: list[str]) -> None:
    """Whether it can be used, and which jobs it is for."""
    result = muster("explain", filed("policy.yaml", config_map))
    assert result.exit_code == 0, result.output
    assert_names(result.stdout, *names)


def test_a_runtime_alone_is_explained_by_a_trainjob_of_it(muster: Muster, filed: Any, lines: Any) -> None:
    """In a file and in a cluster."""
    runtime = a_runtime(None)
    result = muster("explain", filed("runtime.yaml", runtime))
    assert result.exit_code == 0, result.output
    assert_names(result.stdout, "policy: none of its own", "TrainJob default/example", "launcher: gang of")
    assert_names(result.stderr, "example")
    kind, name = runtime["kind"], runtime["metadata"]["name"]
    printed = lines(f"{kind}/{name}", [runtime])
    assert printed[0] == f"{kind} {name}"
    assert "TrainJob default/example" in printed


def test_a_pod_of_a_file_gets_the_group_that_admission_would_give_it(muster: Muster, filed: Any) -> None:
    """By its labels."""
    pod = b.a_pod(b.a_job(), 0, b.unstamped)
    result = muster("explain", filed("pod.yaml", pod))
    assert_names(result.stdout, f"PodGroup {GROUP}, which does not exist", f"gate: {GATE}")


class TestFileAndCluster:
    """A FILE with --kubeconfig is explained as if it were applied to that cluster."""

    POLICY = a_config_map(policy="workload: {onScale: Flag}")

    def explained(self, muster: Muster, path: str, *options: str) -> Any:
        """The only explanation, as data."""
        (data,) = json.loads(muster("explain", path, "-n", "team-a", "-o", "json", *options).stdout)
        return data

    def test_policies_and_names_are_those_of_the_cluster(
        self, muster: Muster, kubeconfig: Any, filed: Any
    ) -> None:
        """A Job that exists there keeps its UID."""
        path, load = kubeconfig
        load([self.POLICY, b.a_job()])
        job = b.a_job()
        del job["metadata"]["uid"], job["metadata"]["namespace"]
        file = filed("job.yaml", job)
        alone = self.explained(muster, file)
        applied = self.explained(muster, file, "--kubeconfig", path)
        assert alone["policy"] == "the built-in default"
        assert applied["policy"] == "ConfigMap team-a/muster-policy, key policy"
        names = [data["groups"][0]["podGroups"][0]["name"] for data in (alone, applied)]
        assert names == ["llama-main-xxxxxxxx", GROUP]

    def test_the_namespace_is_the_one_of_the_cluster(
        self, muster: Muster, kubeconfig: Any, filed: Any
    ) -> None:
        """One that is not labelled labels no Job."""
        path, load = kubeconfig
        load([b.a_namespace(enabled=False)])
        file = filed("job.yaml", b.a_job(label=None))
        assert self.explained(muster, file)["groups"]
        assert self.explained(muster, file, "--kubeconfig", path)["skipped"]["reason"] == "NotMarked"

    def test_the_runtime_is_the_one_of_the_cluster(self, muster: Muster, kubeconfig: Any, filed: Any) -> None:
        """One that the Trainer does not ship, too."""
        path, load = kubeconfig
        runtime = a_runtime(None)
        runtime["metadata"]["name"] = "ours"
        load([runtime])
        trainjob = b.a_trainjob()
        trainjob["spec"]["runtimeRef"] = {"name": "ours", "kind": runtime["kind"]}
        file = filed("trainjob.yaml", trainjob)
        assert muster("explain", file).exit_code == 2
        assert self.explained(muster, file, "--kubeconfig", path)["groups"]


SHAPES = [
    pytest.param("Job", "batch/v1", {}, "spec", id="a Job without a spec"),
    pytest.param(
        "TrainJob", "trainer.kubeflow.org/v1alpha1", {"spec": {}}, "spec.runtimeRef", id="no runtime"
    ),
    pytest.param(
        "JobSet",
        "jobset.x-k8s.io/v1alpha2",
        {"spec": {"replicatedJobs": [{"name": "a"}]}},
        "spec.replicatedJobs[0].template",
        id="a replicatedJob without a template",
    ),
    pytest.param("ConfigMap", "v1", {"data": {"policy": 7}}, "data.policy", id="a policy that is a number"),
]


@pytest.mark.parametrize(("kind", "version", "rest", "path"), SHAPES)
def test_an_object_of_a_wrong_shape_is_reported_with_the_path(
    muster: Muster, filed: Any, kind: str, version: str, rest: Any, path: str
) -> None:
    """One line, exit status 2."""
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "muster-policy"}, **rest}
    result = muster("explain", filed("a.yaml", yaml.safe_dump(body)))
    assert (result.exit_code, result.stdout) == (2, "")
    line = result.stderr.splitlines()[-1]
    assert_names(line, kind, "muster-policy", path)
