"""`muster explain`: files and live owners, as text and as a flowchart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from muster.cli import main
from muster.cluster.client import Client
from muster.files import EVENTING
from muster.objects.resources import CONFIGMAPS, JOBS, NAMESPACES
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support.builders import (
    Object,
    a_job,
    a_jobset,
    a_namespace,
    a_replicated_job,
    a_trainjob,
    annotated,
    template_labelled,
    with_spec,
)
from tests.support.priorities import a_priority_class, of_class
from tests.support.runtimes import a_runtime

POLICY = "muster.dev/pod-group-policy"


def run(*arguments: object) -> Result:
    """The command with these arguments."""
    return CliRunner().invoke(main, ["explain", *map(str, arguments)], env={"KUBECONFIG": ""})


def written(folder: Path, *objects: Object) -> Path:
    """A file with objects."""
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return path


def a_plain_job(policy: str, **labels: str) -> Object:
    """A Job as a person writes it, without what the API server adds."""
    body = a_job(annotated({POLICY: policy}), template_labelled(labels), mark=None, pods=4)
    for field in ("uid", "resourceVersion"):
        del body["metadata"][field]
    return body


def test_a_file_is_explained_without_a_cluster(tmp_path: Path) -> None:
    """Policy, groups with counts and names, and each step; what was assumed goes to standard error."""
    result = run(written(tmp_path, a_plain_job("workload: {groups: [{name: main}]}")))
    assert result.exit_code == 0
    assert f"policy: annotation {POLICY} of Job team-a/llama" in result.stdout
    assert "    main: gang of 4 of 4 pods\n      PodGroup llama-main-xxxxxxxx (4 pods)\n" in result.stdout
    assert "create_pod_groups: PodGroupsCreated" in result.stdout
    assert "namespace team-a is not in the file" in result.stderr


def test_priority_classes_in_the_file_are_compared_by_value(tmp_path: Path) -> None:
    """Of two names with one value the pods are one gang; of two values the message has both."""
    jobset = a_jobset(
        *(a_replicated_job(name, of_class(f"class-{name}"), mark="g") for name in ("a", "b")),
    )
    one = a_priority_class("class-a", 1000)
    same = run(written(tmp_path, jobset, one, a_priority_class("class-b", 1000)))
    assert "    g: gang of 4 of 4 pods, priority class class-a\n" in same.stdout
    other = run(written(tmp_path, jobset, one, a_priority_class("class-b", 10)))
    assert "cannot be had: PrioritiesDiffer" in other.stdout
    assert "have priorityClassName class-a (1000), class-b (10)\n" in other.stdout


def test_a_runtime_that_upstream_groups_is_above_every_policy(tmp_path: Path) -> None:
    """The field that says so comes first, the policy that lost after it, and no step makes a group."""
    runtime = a_runtime("workload: {}", spec={"scheduling": {"schedulingPolicy": {"gang": {}}}})
    trainjob = a_trainjob(with_spec(runtimeRef={"name": "mpi", "kind": "ClusterTrainingRuntime"}))
    result = run(written(tmp_path, runtime, trainjob))
    assert "policy: spec.scheduling of ClusterTrainingRuntime mpi\n" in result.stdout
    assert f"(not looked at: annotation {POLICY} of ClusterTrainingRuntime mpi)" in result.stdout
    assert "create_workload: UpstreamGroups: " in result.stdout
    assert "create PodGroup" not in result.stdout


def test_where_labels_and_policy_disagree_the_labels_to_add_are_printed(tmp_path: Path) -> None:
    """Path, label and value, so that nobody has to look them up; and the path in the policy."""
    result = run(written(tmp_path, a_plain_job("workload: {groups: [{name: rack, size: 2}]}")))
    assert "cannot be had: InvalidPolicy" in result.stdout
    assert "workload.groups[0].name: no pod template has the label muster.dev/group: rack" in result.stdout
    assert "    spec.template.metadata.labels: muster.dev/group: rack\n" in result.stdout
    assert "    spec.template.metadata.labels: muster.dev/group-size: 2\n" in result.stdout


def test_with_the_labels_added_nothing_is_in_the_way(tmp_path: Path) -> None:
    """What was printed above is what it takes."""
    labels = {"muster.dev/group": "rack", "muster.dev/group-size": "2"}
    result = run(written(tmp_path, a_plain_job("workload: {groups: [{name: rack, size: 2}]}", **labels)))
    assert "cannot be had" not in result.stdout
    assert "labels to add" not in result.stdout
    assert "PodGroup llama-rack-xxxxxxxx-1 (2 pods)" in result.stdout


@pytest.mark.parametrize(
    ("hard", "warning"),
    [
        pytest.param({"pods": "3"}, "4 pods need pods 4, ResourceQuota small allows 3", id="pods"),
        pytest.param(
            {"requests.cpu": "3500m"},
            "4 pods need requests.cpu 8, ResourceQuota small allows 3500m",
            id="CPU in thousandths",
        ),
        pytest.param({"pods": "4", "cpu": "8"}, "", id="just enough"),
    ],
)
def test_a_gang_above_the_quota_is_a_warning(tmp_path: Path, hard: dict[str, str], warning: str) -> None:
    """The scheduler waits for pods that the quota never lets exist; nothing else says so beforehand."""
    job = a_plain_job("workload: {}")
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "team-a"},
        "spec": {"hard": hard},
    }
    result = run(written(tmp_path, job, quota))
    assert result.exit_code == 0
    assert (f"warning: group main: {warning}" in result.stdout) if warning else "warning" not in result.stdout


def test_a_file_as_a_flowchart() -> None:
    """Mermaid, for a README."""
    result = run(EVENTING / "examples" / "prefill-and-decode.yaml", "--mermaid")
    assert result.stdout.startswith('flowchart TD\n  owner["JobSet example-inference/chat"]\n')
    assert "  owner --> g_chat\n" in result.stdout
    assert "  g_chat --> g_decode\n" in result.stdout


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """An API server with a marked Job, a policy for it and one for its namespace."""
    with ApiServer() as server:
        server.load(resource_definitions())
        client = Client.for_server(server.url)
        home = {**a_namespace(), "metadata": {"name": "team-a"}}
        client.create(NAMESPACES, home, manager="test")
        job = a_plain_job("workload: {onScale: Flag}", **{"muster.dev/group": "main"})
        job["spec"]["template"]["spec"] = {
            "restartPolicy": "Never",
            "containers": [{"name": "node", "image": "example.com/train"}],
        }
        client.create(JOBS, job, manager="test")
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "muster-policy", "namespace": "team-a"},
            "data": {"policy": "workload: {}"},
        }
        client.create(CONFIGMAPS, config, manager="test")
        path = tmp_path / "kubeconfig"
        cluster = {"name": "one", "cluster": {"server": server.url}}
        context = {"name": "one", "context": {"cluster": "one", "user": "one"}}
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [cluster],
                    "contexts": [context],
                    "users": [{"name": "one", "user": {}}],
                    "current-context": "one",
                }
            )
        )
        yield path


def test_a_live_owner_is_explained(kubeconfig: Path) -> None:
    """The homes that lost are named, and nothing is written."""
    result = run("job/llama", "-n", "team-a", "--kubeconfig", kubeconfig)
    assert result.exit_code == 0, result.output
    assert f"policy: annotation {POLICY} of Job team-a/llama\n" in result.stdout
    assert "(not looked at: ConfigMap team-a/muster-policy, key policy)" in result.stdout
    assert "create_workload: WorkloadCreated" in result.stdout
    assert "create_pod_groups: AwaitingWorkload" in result.stdout


def test_a_live_owner_as_a_flowchart(kubeconfig: Path) -> None:
    """The same groups, in Mermaid."""
    result = run("job/llama", "-n", "team-a", "--mermaid", "--kubeconfig", kubeconfig)
    assert result.stdout.startswith('flowchart TD\n  owner["Job team-a/llama"]\n')
    assert "  owner --> g_main\n" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["job/other", "-n", "team-a"], "Job team-a/other does not exist", id="no such owner"),
        pytest.param(
            ["pod/llama"], "pod/llama: is no file, and no trainjob/NAME", id="a kind without groups"
        ),
        pytest.param(["nowhere.yaml"], "nowhere.yaml: is no file", id="no such file"),
    ],
)
def test_bad_input_is_one_line(kubeconfig: Path, arguments: list[str], message: str) -> None:
    """And exit status 2."""
    result = run(*arguments, "--kubeconfig", kubeconfig)
    assert result.exit_code == 2
    assert message in result.output
    assert result.output.count("\n") == 1


def test_without_a_cluster_an_owner_cannot_be_found() -> None:
    """The message says how to name one."""
    assert "name one by --kubeconfig or $KUBECONFIG" in run("job/llama").output


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(a_namespace(), "has no TrainJob, JobSet or Job in it", id="no job at all"),
        pytest.param(
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": "a"},
                "spec": {"runtimeRef": {"name": "mine"}},
            },
            "ClusterTrainingRuntime mine is neither in the file nor shipped by the Trainer",
            id="a runtime nobody knows",
        ),
    ],
)
def test_a_file_that_cannot_be_explained_says_why(tmp_path: Path, body: Object, message: str) -> None:
    """One line, exit status 2."""
    result = run(written(tmp_path, body))
    assert result.exit_code == 2
    assert message in result.output
