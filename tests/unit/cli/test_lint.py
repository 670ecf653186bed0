"""`muster lint`: policies and group labels in manifests, for CI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.data import EVENTING
from tests.support import builders as b
from tests.support.runtimes import a_runtime
from tests.unit.cli.conftest import Filed, Muster, a_config_map, assert_names
from tests.unit.cli.sample import an_event

POLICY = "muster.dev/pod-group-policy"


def a_policy(text: str) -> b.Modifier:
    """The annotation with a policy."""
    return b.annotated({POLICY: text})


JOB, RUNTIME, POLICY_OF = "Job team-a/llama", "ClusterTrainingRuntime mpi", "ConfigMap team-a/muster-policy"
HOLDS = ("warning", RUNTIME, "HoldsWhileWaiting")
LOCKED = [
    a_config_map("muster-system", locked="{onFailure: Basic}"),
    b.a_job(a_policy("workload: {onFailure: Hold}")),
]
INVALID = ("error", JOB, "InvalidPolicy")
ODD, RACK = "workload: {onScale: Sometimes}", "workload: {groups: [{name: rack}]}"
SHAPELESS = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "llama", "namespace": "team-a"}}
MISSPELT = b.template_labelled({"muster.dev/gruop": "main"})
MISPLACED = b.labelled({"muster.dev/group": "main"})
UNKNOWN = b.a_trainjob(b.with_spec(runtimeRef={"name": "ours"}))
NOT_IN = b.a_namespace(b.labelled({"muster.dev/gang-jobs": "true"}))
JOBSET = ("warning", "JobSet team-a/llama", "HoldsWhileWaiting")
NO_GANG = ("warning", JOB, "NotMarked")
TOGETHER = [b.a_replicated_job(name) for name in ("driver", "workers")]
BY_POLICY = a_policy("workload: {groups: [{name: driver}, {name: workers}]}")
SEVERAL = [b.a_replicated_job(name, label=name) for name in ("driver", "workers")]
IN_ORDER = [b.a_replicated_job("driver"), b.a_replicated_job("workers", after=("driver",))]


def a_plain_job(*modifiers: b.Modifier, **spec: Any) -> Any:
    """A Job without a label, whose spec has other fields than a gang's."""
    return b.a_job(b.with_spec(**spec), *modifiers, label=None)


def a_cron_job(job: Any, *modifiers: b.Modifier) -> Any:
    """A CronJob that creates Jobs like this one."""
    template = {"metadata": {"annotations": job["metadata"].get("annotations", {})}, "spec": job["spec"]}
    return b.an_object("batch/v1", "CronJob", "nightly", "u", b.with_spec(jobTemplate=template), *modifiers)


def a_deployment() -> Any:
    """A Deployment with the pod template of a gang."""
    template = b.with_spec(template=b.a_job()["spec"]["template"])
    return b.an_object("apps/v1", "Deployment", "llama", "u", template)


def a_gang(kind: str, label: str = "4", labels: Any = None, *, annotated: Any = None, **spec: Any) -> Any:
    """An object of a kind whose pod template has the label of a gang of any controller."""
    metadata = {"labels": {"muster.dev/min-count": label} | (labels or {})}
    template = {"metadata": metadata, "spec": {"containers": []}}
    body = b.an_object("example.com/v1" if kind != "StatefulSet" else "apps/v1", kind, "llama", "u")
    body["metadata"]["annotations"] = annotated or {}
    return body | {"spec": {"group": {"Launcher": {"template": template}}, **spec}}


EXCLUSIVE = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}
RAY, LWS, MPI = (f"{kind} team-a/llama" for kind in ("RayCluster", "LeaderWorkerSet", "MPIJob"))
SIZED = b.labelled({"muster.dev/min-count": "4"})
CRON_JOB, UNREAD = "CronJob team-a/nightly", ("warning", "Deployment team-a/llama", "MisplacedLabel")
CASES: list[tuple[list[Any], set[tuple[str, str, str]]]] = [
    ([b.a_job(a_policy("workload: {}")), b.a_pod_group(), b.a_workload()], set()),
    ([b.a_job(b.labelled({"empty": None}))], set()),
    ([b.a_job(a_policy(ODD))], {INVALID}),
    ([b.a_job(a_policy(RACK))], {INVALID}),
    (LOCKED, {INVALID}),
    ([b.a_job(pods=7)], {("warning", JOB, "EndsWhenEvicted")}),
    ([b.a_job(b.with_spec(backoffLimit=7), pods=7)], set()),
    ([a_config_map(locked="{onFailure: Hold}")], {("warning", POLICY_OF, "MisplacedPolicy")}),
    ([a_runtime(ODD)], {("error", RUNTIME, "InvalidPolicy"), HOLDS}),
    ([a_runtime(RACK)], {("error", RUNTIME, "InvalidPolicy"), HOLDS}),
    ([UNKNOWN], {("warning", "TrainJob team-a/llama", "UnknownRuntime")}),
    ([b.a_job(label="My Group")], {("error", JOB, "InvalidLabel")}),
    ([b.a_job(MISSPELT)], {("warning", JOB, "UnknownLabel")}),
    ([b.a_job(MISPLACED, label=None)], {("warning", JOB, "MisplacedLabel")}),
    ([NOT_IN], {("error", "Namespace team-a", "InvalidLabel")}),
    ([SHAPELESS], {("error", JOB, "UnreadableObject")}),
    ([b.a_jobset(*SEVERAL[:1] * 2, enabled=False)], {("error", "JobSet team-a/llama", "UnreadableObject")}),
    ([b.a_job(b.template_annotated({"muster.dev/gate": "all"}))], set()),
    ([a_deployment()], {UNREAD}),
    ([b.an_object("apps/v1", "Deployment", "llama", "u", a_policy(RACK))], {UNREAD}),
    ([a_cron_job(b.a_job(a_policy("workload: {}")))], set()),
    ([a_cron_job(b.a_job(a_policy(ODD)))], {("error", CRON_JOB, "InvalidPolicy")}),
    ([a_cron_job(b.a_job(MISSPELT))], {("warning", CRON_JOB, "UnknownLabel")}),
    ([a_cron_job(b.a_job(label=None))], {("warning", CRON_JOB, "NotMarked")}),
    ([a_cron_job(b.a_job(), a_policy("workload: {}"))], {("warning", CRON_JOB, "MisplacedLabel")}),
    ([a_cron_job({"metadata": {}, "spec": None})], {("error", CRON_JOB, "UnreadableObject")}),
    ([b.a_namespace(), a_plain_job(completionMode="NonIndexed")], {NO_GANG}),
    ([b.a_namespace(), a_plain_job(parallelism=1, completions=1)], {NO_GANG}),
    ([a_plain_job(parallelism=1, completions=1)], set()),
    ([a_plain_job(a_policy("workload: {}"), parallelism=1)], {NO_GANG}),
    ([b.a_namespace(enabled=False), a_plain_job(completions=9)], set()),
    ([a_plain_job(completions=9)], {NO_GANG}),
    ([b.a_job(b.with_spec(completions=9), label="none")], set()),
    ([b.a_job(b.template_spec(nodeName="node-1"))], {("warning", JOB, "CannotBeGrouped")}),
    ([b.a_jobset(*SEVERAL)], {JOBSET}),
    ([b.a_jobset(*TOGETHER)], set()),
    ([b.a_jobset(*IN_ORDER)], set()),
    ([b.a_jobset(*SEVERAL, modifiers=(BY_POLICY,))], set()),
    ([a_gang("StatefulSet", "all", podManagementPolicy="Parallel")], set()),
    ([a_gang("StatefulSet")], {("warning", "StatefulSet team-a/llama", "WaitsForItself")}),
    ([a_gang("RayCluster")], set()),
    ([a_gang("RayCluster", "0")], {("error", RAY, "InvalidLabel")}),
    ([a_gang("RayCluster", "all")], {("error", RAY, "InvalidLabel")}),
    ([a_gang("RayCluster", labels={"muster.dev/gangs": "a"})], {("warning", RAY, "UnknownLabel")}),
    ([a_gang("LeaderWorkerSet", startupPolicy="LeaderReady")], {("warning", LWS, "WaitsForItself")}),
    ([a_gang("LeaderWorkerSet", "all", annotated=EXCLUSIVE)], {("warning", LWS, "WaitsForItself")}),
    ([a_gang("MPIJob", launcherCreationPolicy="WaitForWorkersReady")], {("warning", MPI, "WaitsForItself")}),
    ([b.an_object("v1", "Pod", "llama", "u", SIZED)], {("error", "Pod team-a/llama", "InvalidLabel")}),
]


@pytest.mark.parametrize(("objects", "expected"), CASES)
def test_faults(
    muster: Muster, filed: Filed, objects: list[Any], expected: set[tuple[str, str, str]]
) -> None:
    """Each fault is reported once, with its file; an error makes the exit status 1."""
    path = filed("all.yaml", yaml.safe_dump_all(objects))
    result = muster("lint", path, "-o", "json")
    faults = json.loads(result.stdout)
    found = [(fault["severity"], fault["object"], fault["reason"]) for fault in faults]
    assert sorted(found) == sorted(expected)
    assert {fault["file"] for fault in faults} <= {path}
    assert result.exit_code == any(severity == "error" for severity, _, _ in expected)
    assert muster("lint", "--strict", path).exit_code == bool(expected)


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
    assert_names(result.stdout, "UnreadableFile", "broken.yaml", "2 files")


def test_objects_may_have_their_names_generated(muster: Muster, filed: Filed) -> None:
    """As `kubectl create` takes them; of two with the same generateName each is checked."""
    jobs = [b.a_job(a_policy(text)) for text in (RACK, "workload: {}")]
    for job in jobs:
        job["metadata"] |= {"name": None, "generateName": "llama-"}
    path = filed("jobs.yaml", yaml.safe_dump_all(jobs))
    (fault,) = json.loads(muster("lint", path, "-o", "json").stdout)
    assert (fault["document"], fault["reason"]) == (1, "InvalidPolicy")
    assert fault["object"].startswith("Job team-a/llama-")
    event = filed("event.json", an_event(type="dev.muster.sweep", data=None))
    assert muster("plan", "create_workload", "--event", event, "--objects", path).exit_code == 0


def test_a_target_in_which_nothing_is_checked_is_told(muster: Muster, filed: Filed, tmp_path: Path) -> None:
    """A file, or all files of a folder; in a folder with a job any other file may be there too."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "llama"}}
    path = filed("service.json", service)
    for target in (path, str(tmp_path)):
        (fault,) = json.loads(muster("lint", target, "-o", "json").stdout)
        assert (fault["severity"], fault["file"], fault["reason"]) == ("warning", target, "NothingChecked")
    filed("job.json", b.a_job())
    assert json.loads(muster("lint", str(tmp_path), "-o", "json").stdout) == []
