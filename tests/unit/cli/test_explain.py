"""`muster explain`: owners of files and of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from muster.cli import main
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.controllers import shipped_runtime
from muster.simulator.controllers.trainer import typed_runtime
from tests.support import builders as b
from tests.support.runtimes import a_runtime
from tests.unit.cli.conftest import Muster, assert_names

POLICY = "muster.dev/pod-group-policy"
GROUP = "llama-main-33333333"
SINCE = "2026-11-21T08:00:00Z"
NO_ROOM = "0/3 nodes are available"

Explained = Callable[..., Result]


@pytest.fixture(name="explained")
def _explained(tmp_path: Path) -> Explained:
    """Explain objects of a file."""

    def explain(*objects: Any) -> Result:
        path = tmp_path / "job.yaml"
        path.write_text(yaml.safe_dump_all(objects))
        return CliRunner().invoke(main, ["explain", str(path)], env={"KUBECONFIG": ""})

    return explain


def a_plain_job(policy: str, **labels: str) -> Any:
    """A Job as a person writes it, without what the API server adds."""
    modifiers = b.annotated({POLICY: policy}), b.template_labelled(labels)
    body = b.a_job(*modifiers, label=None, pods=4)
    for field in ("uid", "resourceVersion"):
        del body["metadata"][field]
    return body


def line_of(text: str, name: str) -> str:
    """Return the one line of a text that has a name in it."""
    (line,) = (line for line in text.splitlines() if name in line)
    return line.strip()


def test_a_file_is_explained_without_a_cluster(explained: Explained) -> None:
    """Policy, groups with counts and names, and each step; what was assumed goes to standard error."""
    result = explained(a_plain_job("workload: {groups: [{name: main}]}"))
    assert result.exit_code == 0
    assert_names(line_of(result.stdout, POLICY), "Job team-a/llama")
    assert_names(line_of(result.stdout, "PodGroup llama"), "llama-main-xxxxxxxx", "4")
    assert_names(result.stdout, "WorkloadCreated", "PodGroupsCreated")
    assert_names(result.stderr, "team-a")


def test_where_labels_and_policy_disagree_the_labels_to_add_are_printed(explained: Explained) -> None:
    """Path, label and value, so that users need not look them up; and the path in the policy."""
    result = explained(a_plain_job("workload: {groups: [{name: rack, size: 2}]}"))
    assert_names(result.stdout, "InvalidPolicy", "workload.groups[0].name")
    assert_names(line_of(result.stdout, "labels: muster.dev/group: "), "spec.template.metadata", "rack")
    assert_names(line_of(result.stdout, "labels: muster.dev/group-size: "), "2")


@pytest.mark.parametrize(
    ("objects", "named"),
    [
        pytest.param(
            [b.a_job(pods=1, label=None)], ("parallelism 1", "muster.dev/group"), id="a Job of one pod"
        ),
        pytest.param([b.a_job(pods=1)], ("gang of 1",), id="a Job of one pod, labelled by hand"),
        pytest.param(
            [b.a_jobset(b.a_replicated_job("driver"), b.a_replicated_job("workers"))],
            ("driver and workers", "2 separate gangs"),
            id="driver and workers",
        ),
    ],
)
def test_notes_say_what_the_groups_do_not_guarantee(
    explained: Explained, objects: list[Any], named: tuple[str, ...]
) -> None:
    """A user who expects another gang reads why there is none."""
    output = explained(b.a_namespace(), *objects).stdout
    notes = [line for line in output.splitlines() if line.startswith("  note: ")]
    assert_names("\n".join(notes), *named)


def test_a_basic_template_of_the_users_own_workload_is_explained_as_basic(explained: Explained) -> None:
    """It opts the Job out of its gang, and is no gang of 4 of 4 pods."""
    job = b.a_job(pods=4)
    result = explained(b.a_namespace(), job, b.a_users_workload(b.a_basic("one-by-one"), root=job))
    assert line_of(result.stdout, "main: ") == "main: basic, 4 pods, template one-by-one"


def test_a_policy_in_the_spec_of_a_runtime_of_a_file_is_explained(explained: Explained) -> None:
    """With the labels that mark_runtime writes before the TrainJob exists; a snapshot is not read."""
    group = {"name": "workers", "replicatedJobs": ["node"], "schedulingPolicy": {"gang": {"minCount": 2}}}
    runtime = shipped_runtime("torch-distributed")
    runtime["spec"]["podGroupPolicy"] = {"workload": {"groups": [group]}}
    runtime |= {"kind": "TrainingRuntime", "metadata": {"name": "gangs", "namespace": "team-a"}}
    reference = {"name": "gangs", "kind": "TrainingRuntime"}
    trainjob = b.a_trainjob(b.with_spec(runtimeRef=reference, trainer={"numNodes": 3}))
    text = {"runtime": yaml.safe_dump(typed_runtime(runtime))}
    snapshot = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "llama-runtime-snapshot", "namespace": "team-a"},
        "data": text,
    }
    b.owned_by(trainjob)(snapshot)
    result = explained(runtime, trainjob, snapshot)
    assert result.exit_code == 0
    assert "spec.podGroupPolicy of TrainingRuntime gangs" in line_of(result.stdout, "policy:")
    assert "gang of 2 of 3 pods" in line_of(result.stdout, "workers: ")
    assert result.stderr.count("TrainingRuntime gangs") == 2


def test_locked_fields_and_who_locked_them_are_shown(explained: Explained) -> None:
    """With the policy that applies, and with the one that a lock refuses."""
    admin = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "muster-policy", "namespace": "muster-system"},
        "data": {"policy": "workload: {}", "locked": "{onFailure: Hold, disruptionMode: {all: {}}}"},
    }
    text = explained(admin, a_plain_job("workload: {onFailure: Basic}")).stdout
    assert "disruptionMode: all" in line_of(text, "locked: ")
    assert_names(line_of(text, "cannot be made: "), "workload.onFailure", "muster-system/muster-policy")
    assert "fallback" not in text
    assert line_of(text, "its pods keep their gate")


def test_a_runtime_alone_is_explained_by_a_trainjob_of_it(explained: Explained) -> None:
    """With the number of nodes of the runtime."""
    result = explained(a_runtime(None))
    assert_names(result.stdout, "TrainJob default/example", "launcher: gang of")
    assert_names(result.stderr, "example")


@pytest.mark.parametrize(
    ("kind", "version", "rest", "path"),
    [
        pytest.param("Job", "batch/v1", {}, "spec", id="a Job without a spec"),
        pytest.param(
            "JobSet",
            "jobset.x-k8s.io/v1alpha2",
            {"spec": {"replicatedJobs": [{"name": "a"}]}},
            "spec.replicatedJobs[0].template",
            id="a replicatedJob without a template",
        ),
    ],
)
def test_an_object_of_a_wrong_shape_is_reported_with_the_path(
    explained: Explained, kind: str, version: str, rest: Any, path: str
) -> None:
    """One line, exit status 2."""
    result = explained({"apiVersion": version, "kind": kind, "metadata": {"name": "llama"}, **rest})
    assert (result.exit_code, result.stdout) == (2, "")
    assert_names(result.stderr.splitlines()[-1], kind, "llama", path)


@pytest.fixture(name="server")
def _server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        server.load([*resource_definitions(), b.a_namespace()])
        yield server


def refused(kind: str, reason: str, message: str) -> b.Modifier:
    """A condition with status False since eight o'clock."""

    def add(body: Any) -> None:
        conditions = body.setdefault("status", {}).setdefault("conditions", [])
        condition = {"type": kind, "status": "False", "reason": reason, "message": message}
        conditions.append(condition | {"lastTransitionTime": SINCE})

    return add


UNGATED = b.with_spec(schedulingGates=[])
LIVE = [
    pytest.param(
        [
            b.a_job(refused("muster.dev/PodGroupsScheduled", "Unschedulable", "0 of 1 groups scheduled")),
            b.a_pod_group(GROUP, refused("PodGroupInitiallyScheduled", "Unschedulable", NO_ROOM)),
            b.a_pod(b.a_job(), 0, b.stamped(GROUP), b.named("llama-0"), UNGATED),
        ],
        "PodGroupsScheduled: ",
        id="in the words of its conditions",
    ),
    pytest.param(
        [
            b.a_job(label=None),
            b.a_pod(
                b.a_job(label=None),
                0,
                b.unstamped,
                UNGATED,
                b.named("llama-0"),
                refused("PodScheduled", "Unschedulable", NO_ROOM),
            ),
        ],
        "pods: ",
        id="by the scheduler's answer about a pod, where it has no group",
    ),
]


@pytest.mark.parametrize(("objects", "beginning"), LIVE)
def test_a_job_of_a_cluster_says_what_it_waits_for_and_since_when(
    muster: Muster, server: ApiServer, tmp_path: Path, objects: list[Any], beginning: str
) -> None:
    """From its groups and pods as they are."""
    (tmp_path / "kubeconfig").write_text(server.kubeconfig())
    arguments = ["explain", "job", "llama", "-n", "team-a", "--kubeconfig", str(tmp_path / "kubeconfig")]
    assert muster(*arguments).exit_code == 1
    server.load(objects)
    result = muster(*arguments)
    assert result.exit_code == 0, result.output
    present = result.stdout.partition("  now:")[2].partition("  steps:")[0]
    assert_names(line_of(present, beginning), "Unschedulable", SINCE, NO_ROOM)
