"""`muster lint`: policies and group labels in manifests, for CI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.cluster.observe.owner import read_owner
from muster.data import EVENTING
from muster.objects.meta import KubernetesObject
from muster.operator.dry_run import DryRunCluster
from muster.operator.quota import quota_warnings
from muster.policy.resolve import ResolvedOwner
from tests.support import builders as b
from tests.support.runtimes import a_runtime
from tests.unit.cli.conftest import Muster, assert_names

POLICY = "muster.dev/pod-group-policy"
QUOTAS = [("three", {"pods": "3"}), ("two", {"pods": "2"}), ("many", {"pods": "1k"}), ("same", {"pods": "2"})]
Faults = list[dict[str, Any]]


def a_policy(text: str) -> b.Modifier:
    """The annotation with a policy."""
    return b.annotated({POLICY: text})


def a_config_map(namespace: str = "team-a", **data: str) -> Any:
    """The ConfigMap with the policy of a namespace, or of the administrator."""
    metadata = {"name": "muster-policy", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def a_quota(pods: int) -> Any:
    """A ResourceQuota of team-a."""
    spec = {"hard": {"pods": str(pods)}}
    return b.an_object("v1", "ResourceQuota", "few", "", b.with_spec(**spec))


HOLDS = ("warning", "ClusterTrainingRuntime mpi", "HoldsWhileWaiting")

CASES = [
    pytest.param([b.a_job(a_policy("workload: {}"))], set(), id="a valid policy"),
    pytest.param(
        [b.a_job(a_policy("workload: {onScale: Sometimes}"))],
        {("error", "Job team-a/llama", "InvalidPolicy")},
        id="an invalid policy is reported once, not again for the Job",
    ),
    pytest.param(
        [b.a_job(a_policy("workload: {groups: [{name: rack}]}"))],
        {("error", "Job team-a/llama", "InvalidPolicy")},
        id="a policy that contradicts the labels",
    ),
    pytest.param(
        [
            a_config_map("muster-system", locked="{onFailure: Basic}"),
            b.a_job(a_policy("workload: {onFailure: Hold}")),
        ],
        {("error", "Job team-a/llama", "InvalidPolicy")},
        id="a policy that sets a locked field",
    ),
    pytest.param(
        [a_config_map(locked="{onFailure: Hold}")],
        {("warning", "ConfigMap team-a/muster-policy", "MisplacedPolicy")},
        id="locked fields that have no effect",
    ),
    pytest.param(
        [a_runtime("workload: {onScale: Sometimes}")],
        {("error", "ClusterTrainingRuntime mpi", "InvalidPolicy"), HOLDS},
        id="the policy of a runtime",
    ),
    pytest.param(
        [a_runtime("workload: {groups: [{name: rack}]}")],
        {("error", "ClusterTrainingRuntime mpi", "InvalidPolicy"), HOLDS},
        id="a runtime none of whose TrainJobs could have its groups",
    ),
    pytest.param(
        [b.a_trainjob(b.with_spec(runtimeRef={"name": "ours"}))],
        {("warning", "TrainJob team-a/llama", "UnknownRuntime")},
        id="a runtime that is in none of the files",
    ),
    pytest.param(
        [b.a_namespace(), b.a_job(pods=4), a_quota(3)],
        {("warning", "Job team-a/llama", "QuotaTooSmall")},
        id="a gang above the quota",
    ),
    pytest.param(
        [b.a_job(label="My Group")],
        {("error", "Job team-a/llama", "InvalidLabel")},
        id="a group that is no DNS label",
    ),
    pytest.param(
        [b.a_job(b.template_labelled({"muster.dev/gruop": "main"}))],
        {("warning", "Job team-a/llama", "UnknownLabel")},
        id="a misspelt label",
    ),
    pytest.param(
        [b.a_job(b.labelled({"muster.dev/group": "main"}), label=None)],
        {("warning", "Job team-a/llama", "MisplacedLabel")},
        id="a group label on the Job instead of its pod template",
    ),
    pytest.param(
        [b.a_namespace(b.labelled({"muster.dev/gang-jobs": "true"}))],
        {("error", "Namespace team-a", "InvalidLabel")},
        id="a namespace that is not opted in",
    ),
    pytest.param(
        [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "llama", "namespace": "team-a"}}],
        {("error", "Job team-a/llama", "UnreadableObject")},
        id="a Job without a spec",
    ),
    pytest.param([b.a_pod_group(), b.a_workload()], set(), id="Muster's own objects"),
]


@pytest.mark.parametrize(("objects", "expected"), CASES)
def test_faults(
    muster: Muster, tmp_path: Path, objects: list[Any], expected: set[tuple[str, str, str]]
) -> None:
    """Each fault is reported once, with its file; an error makes the exit status 1."""
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    result = muster("lint", str(path), "-o", "json")
    faults: Faults = json.loads(result.stdout)
    assert {(fault["severity"], fault["object"], fault["reason"]) for fault in faults} == expected
    assert len(faults) == len(expected)
    assert {fault["file"] for fault in faults} <= {str(path)}
    assert result.exit_code == any(severity == "error" for severity, _, _ in expected)
    strict = muster("lint", "--strict", str(path))
    assert strict.exit_code == bool(expected)


def test_our_own_examples_have_no_fault(muster: Muster) -> None:
    """A folder with manifests, a kustomization and Python."""
    result = muster("lint", "--strict", str(EVENTING / "examples"))
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("0 errors, 0 warnings\n")


def test_files_count_together_and_faults_name_file_and_document(muster: Muster, tmp_path: Path) -> None:
    """The policy of a namespace may be in another file than the Job."""
    job, policy = tmp_path / "a-job.yaml", tmp_path / "nested" / "policy.yml"
    policy.parent.mkdir()
    job.write_text(yaml.safe_dump_all([b.a_namespace(), b.a_job(label=None)]))
    policy.write_text(yaml.safe_dump(a_config_map(policy="workload: {groups: [{name: rack}]}")))
    (tmp_path / "values.yaml").write_text("replicas: 3")
    (fault,) = json.loads(muster("lint", str(tmp_path), "-o", "json").stdout)
    assert (fault["file"], fault["document"], fault["reason"]) == (str(job), 2, "InvalidPolicy")
    assert_names(fault["message"], "ConfigMap team-a/muster-policy", "rack")


def test_an_unreadable_file_is_a_fault(muster: Muster, tmp_path: Path) -> None:
    """The other files are checked nevertheless."""
    (tmp_path / "broken.yaml").write_text("a: [1")
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(b.a_job()))
    result = muster("lint", str(tmp_path))
    assert result.exit_code == 1
    assert_names(result.stdout, "UnreadableFile", "broken.yaml", "1 job")


def test_of_many_quotas_the_smallest_is_named() -> None:
    """A warning of each quota for each of 2,000 Jobs was 628 MB of output."""
    quotas = [b.an_object("v1", "ResourceQuota", name, "", b.with_spec(hard=hard)) for name, hard in QUOTAS]
    cluster = DryRunCluster([b.a_namespace(), b.a_job(pods=4), *quotas])
    _, resolved = read_owner(cluster, KubernetesObject.read(b.a_job(pods=4)).ref)
    assert isinstance(resolved, ResolvedOwner)
    (warning,) = quota_warnings(cluster, resolved)
    assert_names(warning, "4 pods", "ResourceQuota two", "allows 2")
