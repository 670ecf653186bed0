"""`muster explain`: files and live owners, as text and as a flowchart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from muster.cli import main
from muster.cluster.http.client import Client
from muster.objects.resources import CONFIGMAPS, JOBS, NAMESPACES
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support.builders import (
    Object,
    a_basic,
    a_job,
    a_jobset,
    a_namespace,
    a_replicated_job,
    a_trainjob,
    a_users_workload,
    annotated,
    template_labelled,
    with_spec,
)
from tests.support.priorities import a_priority_class, of_class
from tests.support.runtimes import a_runtime
from tests.unit.cli.conftest import assert_names

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
    body = a_job(annotated({POLICY: policy}), template_labelled(labels), label=None, pods=4)
    for field in ("uid", "resourceVersion"):
        del body["metadata"][field]
    return body


def line_of(text: str, name: str) -> str:
    """Return the one line of a text that has a name in it."""
    (line,) = (line for line in text.splitlines() if name in line)
    return line


def test_a_file_is_explained_without_a_cluster(tmp_path: Path) -> None:
    """Policy, groups with counts and names, and each step; what was assumed goes to standard error."""
    result = run(written(tmp_path, a_plain_job("workload: {groups: [{name: main}]}")))
    assert result.exit_code == 0
    assert_names(line_of(result.stdout, POLICY), "Job team-a/llama")
    assert_names(line_of(result.stdout, "PodGroup llama"), "llama-main-xxxxxxxx", "4")
    assert_names(result.stdout, "WorkloadCreated", "PodGroupsCreated")
    assert_names(result.stderr, "team-a")


def test_priority_classes_in_the_file_are_compared_by_value(tmp_path: Path) -> None:
    """Of two names with one value the pods are one gang; of two values the message has both."""
    jobset = a_jobset(
        *(a_replicated_job(name, of_class(f"class-{name}"), label="g") for name in ("a", "b")),
    )
    one = a_priority_class("class-a", 1000)
    same = run(written(tmp_path, jobset, one, a_priority_class("class-b", 1000)))
    assert "PrioritiesDiffer" not in same.stdout
    other = run(written(tmp_path, jobset, one, a_priority_class("class-b", 10)))
    assert "PrioritiesDiffer" in other.stdout
    message = next(line for line in other.stdout.splitlines() if "PrioritiesDiffer" in line)
    assert_names(message, "class-a (1000)", "class-b (10)")


def test_a_runtime_that_upstream_groups_is_above_every_policy(tmp_path: Path) -> None:
    """The field that says so comes first, the policy that lost after it, and no step makes a group."""
    runtime = a_runtime("workload: {}", spec={"scheduling": {"schedulingPolicy": {"gang": {}}}})
    trainjob = a_trainjob(with_spec(runtimeRef={"name": "mpi", "kind": "ClusterTrainingRuntime"}))
    result = run(written(tmp_path, runtime, trainjob))
    winner, loser, *_ = (line for line in result.stdout.splitlines() if "ClusterTrainingRuntime mpi" in line)
    assert_names(winner, "spec.scheduling")
    assert_names(loser, POLICY)
    assert_names(line_of(result.stdout, "create_workload: "), "UpstreamGroups")
    assert "PodGroupsCreated" not in result.stdout


def test_where_labels_and_policy_disagree_the_labels_to_add_are_printed(tmp_path: Path) -> None:
    """Path, label and value, so that users need not look them up; and the path in the policy."""
    result = run(written(tmp_path, a_plain_job("workload: {groups: [{name: rack, size: 2}]}")))
    assert_names(result.stdout, "InvalidPolicy", "workload.groups[0].name")
    labels = [line for line in result.stdout.splitlines() if "spec.template.metadata.labels" in line]
    assert_names(labels[0], "muster.dev/group: rack")
    assert_names(labels[1], "muster.dev/group-size: 2")


def test_with_the_labels_added_nothing_is_in_the_way(tmp_path: Path) -> None:
    """What was printed above is what it takes."""
    labels = {"muster.dev/group": "rack", "muster.dev/group-size": "2"}
    result = run(written(tmp_path, a_plain_job("workload: {groups: [{name: rack, size: 2}]}", **labels)))
    assert "InvalidPolicy" not in result.stdout
    assert "spec.template.metadata.labels" not in result.stdout
    assert_names(line_of(result.stdout, "PodGroup llama-rack-xxxxxxxx-1"), "2")


@pytest.mark.parametrize(
    ("hard", "numbers"),
    [
        pytest.param({"pods": "3"}, ["pods", "4", "3"], id="pods"),
        pytest.param({"requests.cpu": "3500m"}, ["requests.cpu", "8", "3500m"], id="CPU in thousandths"),
        pytest.param({"pods": "4", "cpu": "8"}, [], id="just enough"),
    ],
)
def test_a_gang_above_the_quota_is_a_warning(
    tmp_path: Path, hard: dict[str, str], numbers: list[str]
) -> None:
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
    if not numbers:
        assert "ResourceQuota" not in result.stdout
        return
    warning = line_of(result.stdout, "ResourceQuota small")
    assert_names(warning, "main", *numbers)


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """An API server with a labelled Job, a policy for it and one for its namespace."""
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
    """The policy sources that are hidden are named, and nothing is written."""
    result = run("job/llama", "-n", "team-a", "--kubeconfig", kubeconfig)
    assert result.exit_code == 0, result.output
    winner, loser = line_of(result.stdout, POLICY), line_of(result.stdout, "ConfigMap")
    assert_names(winner, "Job team-a/llama")
    assert_names(loser, "team-a/muster-policy")
    assert result.stdout.index(winner) < result.stdout.index(loser)
    assert_names(line_of(result.stdout, "create_workload: "), "WorkloadCreated")
    assert_names(line_of(result.stdout, "create_pod_groups: "), "AwaitingWorkload")


def test_a_basic_template_of_the_users_own_workload_is_explained_as_basic(tmp_path: Path) -> None:
    """It opts the Job out of its gang, and is no gang of 4 of 4 pods."""
    job = a_job(pods=4)
    own = a_users_workload(a_basic("one-by-one"), root=job)
    result = run(written(tmp_path, a_namespace(), job, own))
    assert result.exit_code == 0, result.output
    assert line_of(result.stdout, "main: ").strip() == "main: basic, 4 pods, template one-by-one"


@pytest.mark.parametrize(
    ("objects", "named"),
    [
        pytest.param(
            [a_namespace(), a_job(pods=1, label=None)],
            ("parallelism 1", "muster.dev/group"),
            id="a Job of one pod",
        ),
        pytest.param([a_namespace(), a_job(pods=1)], ("gang of 1",), id="a Job of one pod, labelled by hand"),
        pytest.param(
            [a_namespace(), a_jobset(a_replicated_job("driver"), a_replicated_job("workers"))],
            ("driver and workers", "2 separate gangs"),
            id="driver and workers",
        ),
    ],
)
def test_notes_say_what_the_groups_do_not_guarantee(
    tmp_path: Path, objects: list[Object], named: tuple[str, ...]
) -> None:
    """A user who expects another gang reads why there is none."""
    output = run(written(tmp_path, *objects)).stdout
    notes = [line.strip() for line in output.splitlines() if line.startswith("  note: ")]
    assert_names("\n".join(notes), *named)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        pytest.param(["node/llama"], "node/llama", id="a kind that cannot be explained"),
        pytest.param(["job/"], "job/", id="no name"),
        pytest.param(["job", "llama", "qwen"], "several", id="several names"),
        pytest.param(["nowhere.yaml"], "nowhere.yaml", id="no such file"),
    ],
)
def test_bad_input_is_one_line(kubeconfig: Path, arguments: list[str], name: str) -> None:
    """And exit status 2."""
    result = run(*arguments, "--kubeconfig", kubeconfig)
    assert result.exit_code == 2
    assert name in result.output
    assert result.output.count("\n") == 1


def test_without_a_cluster_an_owner_cannot_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how to name one."""
    monkeypatch.setenv("HOME", "/home/nobody")
    output = run("job/llama").output
    assert_names(output, "--kubeconfig", "$KUBECONFIG")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        pytest.param(a_namespace(), "TrainJob", id="no job at all"),
        pytest.param(
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": "a"},
                "spec": {"runtimeRef": {"name": "mine"}},
            },
            "ClusterTrainingRuntime mine",
            id="an unknown runtime",
        ),
    ],
)
def test_a_file_that_cannot_be_explained_says_why(tmp_path: Path, body: Object, name: str) -> None:
    """One line, exit status 2."""
    result = run(written(tmp_path, body))
    assert result.exit_code == 2
    assert name in result.output
