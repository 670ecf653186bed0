"""`muster explain`: files and live owners, as text and as a flowchart."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from muster.cli import main
from muster.simulator.controllers import shipped_runtime
from muster.simulator.controllers.trainer.controller import typed_runtime
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
    owned_by,
    template_labelled,
    with_spec,
)
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


def test_where_labels_and_policy_disagree_the_labels_to_add_are_printed(tmp_path: Path) -> None:
    """Path, label and value, so that users need not look them up; and the path in the policy."""
    result = run(written(tmp_path, a_plain_job("workload: {groups: [{name: rack, size: 2}]}")))
    assert_names(result.stdout, "InvalidPolicy", "workload.groups[0].name")
    labels = [line for line in result.stdout.splitlines() if "spec.template.metadata.labels" in line]
    assert_names(labels[0], "muster.dev/group: rack")
    assert_names(labels[1], "muster.dev/group-size: 2")


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


def test_a_policy_in_the_spec_of_a_runtime_of_a_file_is_explained(tmp_path: Path) -> None:
    """With the labels that mark_runtime writes before the TrainJob exists; a snapshot is not read."""
    group = {"name": "workers", "replicatedJobs": ["node"], "schedulingPolicy": {"gang": {"minCount": 2}}}
    runtime = shipped_runtime("torch-distributed")
    runtime["spec"]["podGroupPolicy"] = {"workload": {"groups": [group]}}
    runtime |= {"kind": "TrainingRuntime", "metadata": {"name": "gangs"}}
    reference = {"name": "gangs", "kind": "TrainingRuntime"}
    trainjob = a_trainjob(with_spec(runtimeRef=reference, trainer={"numNodes": 3}))
    snapshot: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "llama-runtime-snapshot", "namespace": "team-a"},
        "data": {"runtime": yaml.safe_dump(typed_runtime(runtime))},
    }
    owned_by(trainjob)(snapshot)
    runtime["metadata"]["namespace"] = "team-a"
    result = run(written(tmp_path, runtime, trainjob, snapshot))
    assert result.exit_code == 0
    assert "spec.podGroupPolicy of TrainingRuntime gangs" in line_of(result.stdout, "policy:")
    assert "gang of 2 of 3 pods" in line_of(result.stdout, "workers: ")
    notes = [line for line in result.stderr.splitlines() if "TrainingRuntime gangs" in line]
    assert len(notes) == 2


def test_locked_fields_and_who_locked_them_are_shown(tmp_path: Path) -> None:
    """With the policy that applies, and with the one that a lock refuses."""
    admin: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "muster-policy", "namespace": "muster-system"},
        "data": {"policy": "workload: {}", "locked": "{onFailure: Hold, disruptionMode: {all: {}}}"},
    }
    job = a_plain_job("workload: {onFailure: Hold}")
    run(written(tmp_path, admin, job))
    job["metadata"]["annotations"][POLICY] = "workload: {onFailure: Basic}"
    text = run(written(tmp_path, admin, job)).stdout
    assert "disruptionMode: all" in line_of(text, "locked: ")
    refused = line_of(text, "cannot be made: ")
    assert "workload.onFailure" in refused
    assert "muster-system/muster-policy" in refused
