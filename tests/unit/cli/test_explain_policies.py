"""`muster explain`: policies of runtimes and of the administrator."""

from __future__ import annotations

from pathlib import Path

import yaml

from muster.simulator.controllers import shipped_runtime
from muster.simulator.controllers.trainer.controller import typed_runtime
from tests.support.builders import Object, a_trainjob, owned_by, with_spec
from tests.unit.cli.test_explain import POLICY, a_plain_job, line_of, run, written


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
