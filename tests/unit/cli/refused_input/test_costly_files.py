"""Time, memory and output of commands for files of objects that no API server stores, or of thousands."""

from __future__ import annotations

import os
import tracemalloc
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml

from muster.cli import explain
from muster.cli.output import echo_documents
from muster.cluster.observe import members
from muster.objects.memory import DataLimit
from muster.objects.pods import Pod
from muster.objects.yaml_files import SafeDumper
from muster.operator.explain.assumptions import assume_cluster
from muster.operator.lint.labels import label_faults
from muster.operator.plan import plan_step
from muster.replay.files import TooMuchReadError
from muster.steps import step_named
from muster.testing.cases import sweep
from tests.support import builders as b
from tests.support.runtimes import a_runtime
from tests.unit.cli.conftest import Filed, Muster, assert_names, noting

POLICY = "muster.dev/pod-group-policy"
SWEEP = {"specversion": "1.0", "id": "1", "source": "/a", "type": "dev.muster.sweep"}


def a_list(*items: Any) -> dict[str, Any]:
    """A file of objects."""
    return {"kind": "List", "apiVersion": "v1", "items": items}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param({"annotations": {"a": "x" * 3_200_000}}, id="one text"),
        pytest.param({"labels": {"a" * 3_200_000: "x"}}, id="a key"),
        pytest.param({"finalizers": ["\u200e" * 32_000] * 100}, id="together"),
    ],
)
@pytest.mark.parametrize("arguments", [["lint"], ["explain"], ["plan", "create_workload", "--objects"]])
def test_objects_with_more_text_than_requests_are_refused(
    muster: Muster, filed: Filed, arguments: list[str], metadata: dict[str, Any]
) -> None:
    """A label of 30 million marks of four bytes took `muster explain` 2.6 GiB, which printed each escaped."""
    job = b.a_job()
    job["metadata"] |= metadata
    event = ["--event", filed("sweep.json", SWEEP)] if "plan" in arguments else []
    result = muster(*arguments, filed("job.yaml", yaml.dump(job, Dumper=SafeDumper)), *event)
    assert result.exit_code == (1 if "lint" in arguments else 2)
    assert_names(result.stdout if "lint" in arguments else result.stderr, "job.yaml", "3145728")


@pytest.mark.thorough
def test_templates_are_linted_one_after_the_other() -> None:
    """The path of each of 1.6 million was kept: of a file of 26 MB more than a gigabyte."""
    job = b.a_job(b.with_spec(**{"k" * 60: [{"metadata": {}}] * 50_000}))
    tracemalloc.start()
    assert list(label_faults(job)) == []
    assert tracemalloc.get_traced_memory()[1] < 500_000
    tracemalloc.stop()


def test_a_long_label_gets_no_hint_of_its_whole_name() -> None:
    """The library takes hundreds of bytes for each character."""
    job = b.a_job(b.template_labelled({"muster.dev/" + "group" * 100_000: "x"}))
    tracemalloc.start()
    ((_, reason, message),) = label_faults(job)
    assert (reason, len(message) < 300) == ("UnknownLabel", True)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def a_gang_of_many_groups(groups: int, pods: int) -> list[Any]:
    """A Job with a PodGroup for each of its blocks."""
    size = pods // groups
    job = b.a_job(b.template_labelled({"muster.dev/group-size": str(size)}), pods=pods)
    names = [f"llama-main-33333333-{block}" for block in range(groups)]
    members = [
        b.a_pod(job, index, b.labelled({"muster.dev/group-size": str(size)}), b.stamped(names[index // size]))
        for index in range(pods)
    ]
    return [b.a_namespace(), job, *(b.a_pod_group(name, root=job) for name in names), *members]


def test_pods_of_other_groups_are_not_read(
    muster: Muster, filed: Filed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`explain` of 512 groups of 12,000 pods took 107 s: each pod was read for each group."""
    read: list[str] = []

    def noted(body: dict[str, Any]) -> Pod:
        read.append(body["metadata"]["name"])
        return Pod.read(body)

    monkeypatch.setattr(members, "Pod", Mock(read=noted))
    result = muster("explain", filed("gang.json", a_list(*a_gang_of_many_groups(50, 100))))
    assert result.stdout.count("patch_pods") == 50
    assert len(read) < 15 * 100  # some times for each step


def test_each_job_that_is_explained_is_shown(
    muster: Muster, filed: Filed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them may take minutes."""
    steps: list[str] = []
    monkeypatch.setattr(explain, "step_shown", noting(steps))
    jobs = [b.a_job(b.named(name), b.of_uid(name * 8)) for name in "ab"]
    assert muster("explain", filed("jobs.json", a_list(*jobs))).exit_code == 0
    assert [step for step in steps if step.startswith("explaining")] == [
        "explaining object 1 of 2",
        "explaining object 2 of 2",
        "explaining job 1 of 2",
        "explaining job 2 of 2",
        "explaining ",
        "explaining 1 of 2: Job team-a/a",
        "explaining ",
        "explaining 2 of 2: Job team-a/b",
        "explaining ",
    ]


def test_a_long_priority_class_is_not_repeated_by_each_group(muster: Muster, filed: Filed) -> None:
    """A JobSet of 250 replicas, which an API server stores, made a plan of 250 MB in two gigabytes."""
    of_each = (
        b.template_spec(priorityClassName="p" * 100_000),
        b.template_labelled({"muster.dev/group-per": "job"}),
    )
    entry = b.a_replicated_job("workers", *of_each, replicas=50, label="main")
    jobset = b.a_jobset(entry, modifiers=[b.annotated({POLICY: "nonsense: 1"})])
    objects = filed("objects.json", a_list(b.a_namespace(), jobset))
    result = muster("plan", "create_workload", "--event", filed("sweep.json", SWEEP), "--objects", objects)
    assert result.stdout.count("kind: PodGroup") == 100  # each named by its action and in its body
    assert len(result.stdout) < 100_000


def test_the_groups_of_a_plan_share_their_texts() -> None:
    """Of hundreds with the settings of one template of a megabyte each had a copy."""
    of_each = b.template_labelled({"muster.dev/group-per": "job"})
    jobset = b.a_jobset(b.a_replicated_job("workers", of_each, replicas=3, label="main"))
    claims = [{"name": "r" * 1_000, "resourceClaimTemplateName": "t"}]
    own = b.a_users_workload(b.a_gang("main", 2, resourceClaims=claims), root=jobset)
    step = step_named("create_pod_groups")
    (planned,) = plan_step(step, sweep(), [b.a_namespace(), jobset, own], b.NOW)
    names = [action["body"]["spec"]["resourceClaims"][0]["name"] for action in planned["actions"]]
    assert len(names) == 3
    assert len(set(map(id, names))) == 1


def test_actions_are_printed_one_by_one() -> None:
    """A plan of 250 MB took two gigabytes as one text."""
    document = {"function": "a", "actions": ["x" * 10_000] * 300}
    tracemalloc.start()
    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        echo_documents([document], "json")
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_the_jobsets_of_trainjobs_count_as_data() -> None:
    """45 TrainJobs of a runtime with 250,000 variables took `muster explain` 2.5 GiB."""
    runtime = a_runtime(None)
    runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["x"] = ["value"] * 10_000
    jobs = [b.a_trainjob(b.named(f"job-{number}")) for number in range(5)]
    for job in jobs:
        job["spec"]["runtimeRef"] = {"kind": runtime["kind"], "name": runtime["metadata"]["name"]}
    assumed = assume_cluster([runtime, *jobs], limit=DataLimit(3_000_000))
    assert [type(fault) for _, fault in assumed.faults] == [TooMuchReadError] * len(assumed.faults)
    assert 0 < len(assumed.faults) < 5


@pytest.mark.thorough
def test_objects_are_copied_once() -> None:
    """`copy.deepcopy` notes each list that it has copied: 1.2 GiB for a file of 8 packed KB of lists."""
    job = b.a_job(b.with_spec(x=[[]] * 100_000))
    tracemalloc.start()
    assume_cluster([job])
    assert tracemalloc.get_traced_memory()[1] < 16_000_000
    tracemalloc.stop()


def test_a_label_is_cut_before_its_characters_are_escaped() -> None:
    """One of 30 million characters took `muster lint` 1.6 GiB."""
    pod = b.a_pod(None, 0, b.labelled({"muster.dev/group": "\ue000" * 100_000}))
    invalid = [message for _, reason, message in label_faults(pod) if reason == "InvalidLabel"]
    assert len(invalid) == 1
    assert len(invalid[0]) < 1_000


def test_names_of_schedulers_are_cut(muster: Muster, filed: Filed) -> None:
    """Each delivery of an event repeats the failure of a group."""
    entries = [
        b.a_replicated_job(name, b.template_spec(schedulerName=name * 100_000), label="g") for name in "ab"
    ]
    objects = filed("objects.json", a_list(b.a_namespace(), b.a_jobset(*entries)))
    result = muster("explain", objects)
    assert_names(result.stdout, "SchedulersDiffer", "a" * 200)
    assert len(result.stdout) < 10_000


def test_an_installation_with_a_long_name_is_refused(muster: Muster, filed: Filed) -> None:
    """A policy with a name of 180 MB took `muster check` 1.4 GiB."""
    policy = {"apiVersion": "v1", "kind": "Any", "metadata": {"name": "x" * 1_000}}
    result = muster("check", "--overlay", filed("installed.yaml", policy), "--kubeconfig", "/none")
    assert result.exit_code == 2
    assert_names(result.stderr, "installed.yaml", "API server stores")


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "cpu"])
@pytest.mark.parametrize("quantity", ["1k", "1e3", "1Ki", "5E", "1m", "0.5", "1e400", 2])
def test_any_quantity_of_a_trainer_is_read(muster: Muster, filed: Filed, name: str, quantity: Any) -> None:
    """As the API server reads it; `1k` was a bug of `lint` and `explain`."""
    job = b.a_trainjob()
    job["spec"]["trainer"] = {"numNodes": 2, "resourcesPerNode": {"limits": {name: quantity}}}
    path = filed("job.json", job)
    assert [muster(command, path).exit_code for command in ("lint", "explain")] == [0, 0]


@pytest.mark.parametrize("beside", [[], [b.a_trainjob()]], ids=["alone", "used"])
def test_a_runtime_with_a_null_in_a_list_is_a_fault(muster: Muster, filed: Filed, beside: list[Any]) -> None:
    """Of the runtime, whether a TrainJob uses it or not."""
    runtime = a_runtime(None)
    runtime["metadata"]["name"] = "torch-distributed"
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    jobs[0]["template"]["spec"]["template"]["spec"]["tolerations"] = [None]
    path = filed("runtime.json", a_list(runtime, *beside))
    for command, exit_code in (("lint", 1), ("explain", 2)):
        result = muster(command, path)
        assert result.exit_code == exit_code, result.output
        assert_names(result.output, "torch-distributed", "tolerations")
