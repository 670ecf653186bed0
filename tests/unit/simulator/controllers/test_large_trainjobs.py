"""JobSets of TrainJobs with tens of thousands of variables or patches are made in little time."""

from __future__ import annotations

import pytest
import yaml

from muster.cluster.interface import Object
from muster.simulator.controllers import shipped_runtime
from muster.simulator.controllers.trainer.jobset import build_jobset
from tests.support import builders as b
from tests.support import cpu


def _variable(number: int) -> Object:
    """A runtimePatch with a variable of its own."""
    env = [{"name": f"PATCH_{number}", "value": "x"}]
    pod = {"spec": {"containers": [{"name": "node", "env": env}]}}
    rjobs = [{"name": "node", "template": {"spec": {"template": pod}}}]
    return {
        "manager": f"m{number}",
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": rjobs}}},
    }


@pytest.mark.thorough
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            {"trainer": {"env": [{"name": f"E{number}"} for number in range(10_000)]}}, id="variables"
        ),
        pytest.param({"runtimePatches": [_variable(number) for number in range(600)]}, id="patches"),
    ],
)
def test_large_trainjobs_take_little_time(spec: Object) -> None:
    """`explain` of one with 60,000 variables or 4,000 patches, of a megabyte, did not end in 150 s."""
    trainjob = b.a_trainjob(b.with_spec(**spec))
    before = yaml.safe_dump(trainjob)
    with cpu.at_most(0.5):
        jobset = build_jobset(trainjob, shipped_runtime("torch-distributed")["spec"])
    assert yaml.safe_dump(trainjob) == before
    node = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    assert len(node["env"]) >= 600
