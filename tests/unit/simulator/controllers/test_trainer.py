"""The simulated Trainer creates from a TrainJob the objects that Trainer 2.3.0 creates."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from muster.cluster.interface import Object
from muster.objects import yaml_files
from muster.objects.resources import CONFIGMAPS, JOBSETS
from muster.simulator.controllers import shipped_runtime, shipped_runtimes
from muster.simulator.controllers.framework.writes import Apply, Delete, RecordEvent
from muster.simulator.controllers.trainer.controller import TrainerController, next_status
from muster.simulator.controllers.trainer.jobset import build_jobset
from tests.unit.simulator.controllers.support import (
    NOW,
    an_object,
    changed,
    merge,
    owned_by,
    recorded,
    recorded_object,
    view,
)


def _trainjob(runtime: str = "torch-distributed", num_nodes: int | None = None, **spec: Any) -> Object:
    trainer = {} if num_nodes is None else {"trainer": {"numNodes": num_nodes}}
    reference = {"name": runtime, "kind": "ClusterTrainingRuntime", "apiGroup": "trainer.kubeflow.org"}
    return an_object(
        "trainer.kubeflow.org/v1alpha1", "TrainJob", "llama", {"runtimeRef": reference, **trainer, **spec}
    )


def _parallelism(jobset: Object) -> dict[str, int]:
    return {
        rjob["name"]: rjob["template"]["spec"]["parallelism"] for rjob in jobset["spec"]["replicatedJobs"]
    }


NODE_ONLY = ("torch-distributed", "jax-distributed", "xgboost-distributed")
MPI = ("deepspeed-distributed", "mlx-distributed")
TORCHTUNE = ("torchtune-llama3.2-1b", "torchtune-llama3.2-3b", "torchtune-qwen2.5-1.5b")


@pytest.mark.parametrize(
    ("runtime", "num_nodes", "expected"),
    [
        *[
            pytest.param(name, given, {"node": count}, id=f"{name} with numNodes {given} runs {count} nodes")
            for name in NODE_ONLY
            for given, count in ((None, 1), (1, 1), (4, 4), (0, 0))
        ],
        *[
            pytest.param(
                name,
                given,
                {"node": count, "launcher": 1},
                id=f"{name} with numNodes {given} runs the launcher and {count} nodes",
            )
            for name in MPI
            for given, count in ((None, 1), (1, 1), (4, 3))
        ],
        *[
            pytest.param(
                name,
                given,
                {"dataset-initializer": 1, "model-initializer": 1, "node": count},
                id=f"{name} with numNodes {given} initializes once and runs {count} nodes",
            )
            for name in TORCHTUNE
            for given, count in ((None, 1), (4, 4))
        ],
        pytest.param(
            "torch-distributed-with-cache",
            4,
            {"dataset-initializer": 1, "node": 4},
            id="torch-distributed-with-cache with numNodes 4 initializes once and runs 4 nodes",
        ),
        pytest.param("flux-distributed", 4, {"node": 4}, id="flux-distributed with numNodes 4 runs 4 nodes"),
    ],
)
def test_shipped_runtime_runs_as_many_pods_as_upstream(
    runtime: str, num_nodes: int | None, expected: dict[str, int]
) -> None:
    """The parallelism of every shipped runtime is what Trainer makes it."""
    jobset = build_jobset(_trainjob(runtime, num_nodes), shipped_runtime(runtime)["spec"])
    assert _parallelism(jobset) == expected
    for rjob in jobset["spec"]["replicatedJobs"]:
        assert rjob["replicas"] == 1
        assert rjob["template"]["spec"]["completions"] == expected[rjob["name"]]


@pytest.mark.parametrize(
    ("runtime", "policy", "num_nodes", "expected"),
    [
        pytest.param(
            "torch-distributed", {"numNodes": 0}, None, {"node": 1}, id="mlPolicy.numNodes is at least 1"
        ),
        pytest.param(
            "torch-distributed",
            {"numNodes": 5},
            None,
            {"node": 5},
            id="mlPolicy.numNodes counts without a trainer",
        ),
        pytest.param(
            "torch-distributed", {"numNodes": 5}, 2, {"node": 2}, id="trainer.numNodes wins over the policy"
        ),
        pytest.param(
            "deepspeed-distributed",
            {"numNodes": 4},
            6,
            {"node": 5, "launcher": 4},
            id="mlPolicy.numNodes of an MPI runtime lands on the launcher",
        ),
        pytest.param(
            "deepspeed-distributed",
            {"mpi": {"runLauncherAsNode": False}},
            4,
            {"node": 4, "launcher": 1},
            id="a launcher that is no node takes none of numNodes",
        ),
    ],
)
def test_policy_and_trainer_share_the_count_as_upstream(
    runtime: str, policy: Object, num_nodes: int | None, expected: dict[str, int]
) -> None:
    """Which of mlPolicy.numNodes and trainer.numNodes counts, and where, follows the plugins."""
    spec = merge(shipped_runtime(runtime)["spec"], {"mlPolicy": policy})
    assert _parallelism(build_jobset(_trainjob(runtime, num_nodes), spec)) == expected


def test_runtime_without_policy_keeps_its_parallelism() -> None:
    """Without an mlPolicy the template's parallelism becomes the completions too."""
    spec = shipped_runtime("torch-distributed")["spec"]
    del spec["mlPolicy"]
    spec["template"]["spec"]["replicatedJobs"][0]["template"]["spec"] |= {"parallelism": 7, "completions": 9}
    jobset = build_jobset(_trainjob(), spec)
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (job["parallelism"], job["completions"]) == (7, 7)


@pytest.mark.parametrize(
    "story",
    [
        pytest.param("torch", id="the torch TrainJob's JobSet is the recorded one"),
        pytest.param("torchtune", id="the torchtune TrainJob's JobSet is the recorded one"),
    ],
)
def test_jobset_equals_the_recorded_one(story: str) -> None:
    """From the recorded TrainJob and runtime comes the recorded JobSet, field by field."""
    runtime = recorded_object(story, "ClusterTrainingRuntime")
    built = build_jobset(recorded_object(story, "TrainJob"), runtime["spec"])
    expected = recorded_object(story, "JobSet")
    assert built["metadata"]["ownerReferences"] == expected["metadata"]["ownerReferences"]
    assert _as_stored(built["spec"]) == expected["spec"]


def _as_stored(spec: Object) -> Object:
    """The spec with the empty fields that the Go types of the real controllers write out."""
    stored: Object = yaml_files.load(yaml.safe_dump(spec))
    for rjob in stored["replicatedJobs"]:
        template = rjob["template"]["spec"]["template"]
        template.setdefault("metadata", {})
        for container in template["spec"]["containers"]:
            container.setdefault("resources", {})
            limits = container["resources"].get("limits")
            if limits:
                container["resources"]["limits"] = {name: str(value) for name, value in limits.items()}
    for policy in stored.get("volumeClaimPolicies") or []:
        for claim in policy["templates"]:
            claim.setdefault("status", {})
    return stored


def test_replicas_of_the_trainer_are_forced_to_one() -> None:
    """A labelled replicatedJob runs once whatever its replicas; one without the label keeps them."""
    spec = shipped_runtime("deepspeed-distributed")["spec"]
    for rjob in spec["template"]["spec"]["replicatedJobs"]:
        rjob["replicas"] = 3
    built = build_jobset(_trainjob("deepspeed-distributed"), spec)["spec"]["replicatedJobs"]
    assert {rjob["name"]: rjob["replicas"] for rjob in built} == {"node": 3, "launcher": 1}


def test_runtime_patches_merge_in_order_and_keep_the_order_of_the_runtime() -> None:
    """Labels, selectors and gates of all runtimePatches arrive; a later manager wins; the order stays."""
    patches = [
        _patch("acme.io/one", {"metadata": {"labels": {"team": "a", "tier": "x"}}}),
        _patch(
            "acme.io/two",
            {
                "metadata": {"labels": {"team": "b"}, "annotations": {"muster.dev/gate": "off"}},
                "spec": {"nodeSelector": {"rack": "1"}, "schedulingGates": [{"name": "acme.io/wait"}]},
            },
        ),
    ]
    trainjob = _trainjob("torchtune-qwen2.5-1.5b", 2, runtimePatches=patches)
    jobset = build_jobset(trainjob, shipped_runtime("torchtune-qwen2.5-1.5b")["spec"])
    names = [rjob["name"] for rjob in jobset["spec"]["replicatedJobs"]]
    pod = jobset["spec"]["replicatedJobs"][2]["template"]["spec"]["template"]
    assert names == ["dataset-initializer", "model-initializer", "node"]
    assert pod["metadata"] == {
        "labels": {"team": "b", "tier": "x"},
        "annotations": {"muster.dev/gate": "off"},
    }
    assert pod["spec"]["nodeSelector"] == {"rack": "1"}
    assert pod["spec"]["schedulingGates"] == [{"name": "acme.io/wait"}]
    assert pod["spec"]["containers"][0]["image"] == "ghcr.io/kubeflow/trainer/torchtune-trainer"


def _patch(manager: str, pod: Object) -> Object:
    replicated = {"name": "node", "template": {"spec": {"template": pod}}}
    return {
        "manager": manager,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [replicated]}}},
    }


def test_first_look_takes_a_snapshot_of_the_runtime_and_applies_the_jobset() -> None:
    """A new TrainJob leads to the snapshot first and the JobSet then; no condition is set."""
    trainjob = _trainjob(num_nodes=3)
    result = TrainerController().reconcile(
        ("team-a", "llama"), view(trainjob, shipped_runtime("torch-distributed")), NOW
    )
    snapshot, jobset = result.writes
    assert isinstance(snapshot, Apply)
    assert isinstance(jobset, Apply)
    assert (snapshot.resource, snapshot.body["metadata"]["name"]) == (CONFIGMAPS, "llama-runtime-snapshot")
    assert yaml_files.load(snapshot.body["data"]["runtime"])["metadata"]["name"] == "torch-distributed"
    assert (jobset.resource, jobset.body["metadata"]["name"]) == (JOBSETS, "llama")


@pytest.mark.parametrize(
    ("stored", "kept"),
    [
        ({"workload": {"onFailure": "Hold"}}, {}),
        ({"kaiScheduler": {}}, {}),
        ({"coscheduling": {"scheduleTimeoutSeconds": 60}}, {"coscheduling": {"scheduleTimeoutSeconds": 60}}),
    ],
)
def test_the_snapshot_has_only_the_fields_of_the_trainers_types(stored: Object, kept: Object) -> None:
    """A policy that a patched CRD keeps in the runtime is not in the snapshot, as on the real Trainer."""
    runtime = shipped_runtime("torch-distributed")
    runtime["spec"] |= {"podGroupPolicy": stored, "scheduling": {"gang": {}}}
    trainjob = _trainjob(num_nodes=3)
    result = TrainerController().reconcile(("team-a", "llama"), view(trainjob, runtime), NOW)
    snapshot = result.writes[0]
    assert isinstance(snapshot, Apply)
    spec = yaml_files.load(snapshot.body["data"]["runtime"])["spec"]
    assert spec["podGroupPolicy"] == kept
    assert "scheduling" not in spec
    assert runtime["spec"]["podGroupPolicy"] == stored


def test_later_looks_read_the_snapshot_and_leave_a_running_jobset_alone() -> None:
    """After the first look the runtime no longer matters, and a JobSet that runs is not applied again."""
    trainjob = _trainjob(num_nodes=3)
    snapshot = _snapshot(trainjob)
    rebuilt = TrainerController().reconcile(("team-a", "llama"), view(trainjob, snapshot), NOW)
    jobset = _stored(rebuilt.writes[0])
    settled = TrainerController().reconcile(("team-a", "llama"), view(trainjob, snapshot, jobset), NOW)
    assert settled.writes == ()


def test_resumed_trainjob_applies_the_jobset_once() -> None:
    """A suspended JobSet is applied again until it is what the TrainJob asks for."""
    suspended = _trainjob(num_nodes=3, suspend=True)
    snapshot = _snapshot(suspended)
    controller = TrainerController()
    created = controller.reconcile(("team-a", "llama"), view(suspended, snapshot), NOW)
    jobset = _stored(created.writes[0])
    assert jobset["spec"]["suspend"] is True
    again = controller.reconcile(("team-a", "llama"), view(suspended, snapshot, jobset), NOW)
    assert not any(isinstance(write, Apply) for write in again.writes)
    resumed = merge(suspended, {"spec": {"suspend": False}})
    writes = controller.reconcile(("team-a", "llama"), view(resumed, snapshot, jobset), NOW).writes
    assert isinstance(writes[0], Apply)
    assert writes[0].body["spec"]["suspend"] is False


def _snapshot(trainjob: Object) -> Object:
    snapshot = an_object("v1", "ConfigMap", "llama-runtime-snapshot", {}, ownerReferences=owned_by(trainjob))
    return {**snapshot, "data": {"runtime": yaml.safe_dump(shipped_runtime("torch-distributed"))}}


def _stored(write: object) -> Object:
    assert isinstance(write, Apply)
    stored: Object = merge(write.body, {"metadata": {"uid": "jobset", "resourceVersion": "9"}})
    return stored


def test_missing_runtime_is_said_in_an_event_and_tried_again() -> None:
    """Without the runtime nothing is made; an Event says so, the status stays empty."""
    result = TrainerController().reconcile(("team-a", "llama"), view(_trainjob("absent")), NOW)
    (event,) = result.writes
    assert isinstance(event, RecordEvent)
    assert event.reason == "TrainJobResourcesCreationFailed"
    assert "absent" in event.message
    assert result.requeue_after


def test_trainjob_managed_by_another_controller_is_left_alone() -> None:
    """A TrainJob handed to MultiKueue is none of the Trainer's business."""
    trainjob = _trainjob(managedBy="kueue.x-k8s.io/multikueue")
    result = TrainerController().reconcile(
        ("team-a", "llama"), view(trainjob, shipped_runtime("torch-distributed")), NOW
    )
    assert result.writes == ()


def test_status_follows_the_jobset_as_recorded() -> None:
    """From each recorded JobSet status comes the TrainJob status that was recorded next."""
    stories = {entry["kind"]: entry["statuses"] for entry in recorded("torch-statuses")}
    trainjob = _trainjob()
    seen = []
    for status in stories["JobSet"]:
        jobset = changed(recorded_object("torch", "JobSet"), **status)
        trainjob["status"] = next_status(trainjob, jobset, NOW)
        seen.append(trainjob["status"])
    assert [status.get("jobsStatus") for status in seen] == [
        status.get("jobsStatus") for status in stories["TrainJob"]
    ]
    (complete,) = seen[-1]["conditions"]
    (expected,) = stories["TrainJob"][-1]["conditions"]
    assert complete | {"lastTransitionTime": ""} == expected | {"lastTransitionTime": ""}
    assert not any("conditions" in status for status in seen[:-1])


def test_suspended_condition_follows_the_spec_and_foreign_conditions_stay() -> None:
    """Suspended turns True and then False with the spec; what others wrote is kept."""
    foreign = {"type": "PodGroupsReady", "status": "True", "reason": "Made", "message": ""}
    trainjob = changed(_trainjob(suspend=True), conditions=[foreign])
    suspended = next_status(trainjob, None, NOW)
    resumed = next_status(merge(trainjob, {"spec": {"suspend": False}, "status": suspended}), None, NOW)
    assert [(condition["type"], condition["status"]) for condition in suspended["conditions"]] == [
        ("PodGroupsReady", "True"),
        ("Suspended", "True"),
    ]
    assert [
        (condition["type"], condition["status"], condition["reason"]) for condition in resumed["conditions"]
    ] == [
        ("PodGroupsReady", "True", "Made"),
        ("Suspended", "False", "Resumed"),
    ]


def test_deadline_fails_the_trainjob_and_deletes_the_jobset() -> None:
    """Once activeDeadlineSeconds are over the TrainJob is Failed and its JobSet goes."""
    trainjob = _trainjob(activeDeadlineSeconds=10)
    jobset = an_object("jobset.x-k8s.io/v1alpha2", "JobSet", "llama", {}, ownerReferences=owned_by(trainjob))
    objects = (trainjob, jobset, _snapshot(trainjob))
    controller = TrainerController()
    created = 1_800_000_000.0
    assert trainjob["metadata"]["creationTimestamp"] == "2027-01-15T08:00:00Z"
    early = controller.reconcile(("team-a", "llama"), view(*objects), created + 4)
    late = controller.reconcile(("team-a", "llama"), view(*objects), created + 11)
    assert (early.writes, early.requeue_after) == ((), 6.0)
    deletion, status = late.writes
    assert isinstance(deletion, Delete)
    assert getattr(status, "body", {})["status"]["conditions"][0]["reason"] == "DeadlineExceeded"


def test_deadline_counts_from_the_last_resume() -> None:
    """Time spent suspended does not count: the clock starts again when the TrainJob is resumed."""
    resumed = {"type": "Suspended", "status": "False", "reason": "Resumed", "message": "TrainJob is resumed"}
    since = {"lastTransitionTime": "2027-01-15T08:01:00Z"}
    trainjob = changed(_trainjob(activeDeadlineSeconds=10), conditions=[resumed | since])
    jobset = an_object("jobset.x-k8s.io/v1alpha2", "JobSet", "llama", {}, ownerReferences=owned_by(trainjob))
    objects = (trainjob, jobset, _snapshot(trainjob))
    result = TrainerController().reconcile(("team-a", "llama"), view(*objects), 1_800_000_063.0)
    assert (result.writes, result.requeue_after) == ((), 7.0)


def test_failure_that_is_over_is_taken_back() -> None:
    """A Failed condition stands only as long as the JobSet says so; the deadline's stays."""
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "FailedJobs",
        "message": "",
        "lastTransitionTime": "",
    }
    late = failed | {"reason": "DeadlineExceeded"}
    assert "conditions" not in next_status(changed(_trainjob(), conditions=[failed]), None, NOW)
    assert next_status(changed(_trainjob(), conditions=[late]), None, NOW)["conditions"] == [late]


def test_all_runtimes_trainer_ships_are_at_hand() -> None:
    """Every runtime of Trainer 2.3.0 is there under its own name."""
    names = {runtime["metadata"]["name"] for runtime in shipped_runtimes()}
    assert names == {
        *NODE_ONLY,
        *MPI,
        *TORCHTUNE,
        "torch-distributed-with-cache",
        "flux-distributed",
    }
