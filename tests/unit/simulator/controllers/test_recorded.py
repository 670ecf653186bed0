"""The simulated controllers write what the real ones were recorded to write; stories show the rest."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.cluster.interface import Object
from muster.objects import yaml_files
from muster.objects.resources import by_kind
from muster.simulator.controllers import jobset as jobset_controller
from muster.simulator.controllers import node
from muster.simulator.controllers.job import controller as job_controller
from muster.simulator.controllers.job.pods import new_pod
from muster.simulator.controllers.jobset import child_job, with_defaults
from muster.simulator.controllers.loop import Cache
from muster.simulator.controllers.scheduler.controller import SchedulerController
from muster.simulator.controllers.trainer import build_jobset, next_status
from muster.simulator.controllers.writes import Bind, Patch, Result
from tests.support.builders import a_job, a_pod, a_trainjob, bound

NOW = 1_800_000_000.0


def recorded(name: str) -> list[Any]:
    """The documents of a file under recorded/."""
    text = (Path(__file__).parent / f"recorded/{name}.yaml").read_text()
    return list(yaml_files.load_all(text))


def recorded_object(name: str, kind: str, like: str = "") -> Object:
    """The recorded object of a kind whose name contains `like`."""
    return next(item for item in recorded(name) if item["kind"] == kind and like in item["metadata"]["name"])


STATUSES = {entry["kind"]: entry["statuses"] for entry in recorded("torch-statuses")}


def _changed(item: Object, **status: Any) -> Object:
    return {**copy.deepcopy(item), "status": {**(item.get("status") or {}), **status}}


def _merge(target: Any, patch: Any) -> Any:
    """What a JSON merge patch makes of a value."""
    if not isinstance(patch, dict):
        return patch
    old = target if isinstance(target, dict) else {}
    merged = {name: _merge(old.get(name), value) for name, value in patch.items()}
    return {name: value for name, value in {**old, **merged}.items() if value is not None}


def _pod_of(job: Object, index: int, phase: str, *finalizers: str) -> Object:
    pod = a_pod(job, index, bound)
    pod["metadata"] |= {
        "annotations": {"batch.kubernetes.io/job-completion-index": str(index)},
        "finalizers": list(finalizers),
    }
    conditions = [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]
    return {**pod, "status": {"phase": phase, "conditions": conditions}}


def _timeless(status: Object) -> Object:
    same = {name: "" if name in ("startTime", "completionTime") else value for name, value in status.items()}
    if "conditions" in same:
        times = {"lastTransitionTime": "", "lastProbeTime": ""}
        same["conditions"] = [condition | times for condition in status["conditions"]]
    return same


def _status(old: Object, result: Result) -> Object:
    status: Object = old.get("status") or {}
    for write in result.writes:
        if isinstance(write, Patch) and write.subresource:
            status = _merge(status, write.body["status"])
    return status


def test_pod_of_a_job() -> None:
    """Name, labels, annotations, owner, finalizer, hostname and variables of a pod."""
    job, expected = recorded_object("torch", "Job"), recorded_object("torch", "Pod")
    pod = new_pod(job, 0, priority=0)
    for field in ("generateName", "labels", "annotations", "finalizers", "ownerReferences", "namespace"):
        assert pod["metadata"][field] == expected["metadata"][field]
    for field in ("hostname", "subdomain", "restartPolicy"):
        assert pod["spec"][field] == expected["spec"][field]
    assert pod["spec"]["containers"][0]["env"] == expected["spec"]["containers"][0]["env"]


def test_statuses_of_a_job() -> None:
    """Pending, ready, succeeded: the statuses come one after the other until Complete."""
    job = a_job(pods=3)
    tracked = ("batch.kubernetes.io/job-tracking",)
    seen: list[Object] = []
    for phase, *finalizers in (
        ("Pending", *tracked),
        ("Running", *tracked),
        ("Succeeded", *tracked),
        ("Succeeded",),
    ):
        pods = [_pod_of(job, index, phase, *finalizers) for index in range(3)]
        status = _status(job, job_controller.sync(job, pods, NOW, job_controller.Backoff(0.0)))
        job = {**job, "status": status}
        seen.append(status)
    assert [_timeless(status) for status in seen] == [_timeless(one) for one in STATUSES["Job"] if one]


@pytest.mark.parametrize(
    ("story", "name"), [("torch", "llama-node-0"), ("torchtune", "qwen-node-0")], ids=("torch", "torchtune")
)
def test_job_of_a_jobset(story: str, name: str) -> None:
    """Names, owner, labels and annotations of Job and pod template."""
    jobset = with_defaults(recorded_object(story, "JobSet"))
    expected = recorded_object(story, "Job", name)
    jobs = [child_job(jobset, rjob, 0) for rjob in jobset["spec"]["replicatedJobs"]]
    made = next(job for job in jobs if job["metadata"]["name"] == name)
    for field in ("labels", "annotations", "ownerReferences"):
        assert made["metadata"][field] == expected["metadata"][field]
    template, wanted = made["spec"]["template"], expected["spec"]["template"]
    added = ("batch.kubernetes.io/", "controller-uid", "job-name", "muster.dev/")
    labels = {key: value for key, value in wanted["metadata"]["labels"].items() if not key.startswith(added)}
    assert template["metadata"] == {**wanted["metadata"], "labels": labels}
    assert template["spec"]["subdomain"] == wanted["spec"]["subdomain"]


def test_statuses_of_a_jobset() -> None:
    """The counts after each recorded status of the Job are among the recorded ones, in their order."""
    jobset = recorded_object("torch", "JobSet")
    jobset.pop("status", None)
    seen: list[Object] = []
    for status in STATUSES["Job"]:
        result = jobset_controller.sync(jobset, [_changed(recorded_object("torch", "Job"), **status)], NOW)
        if any(isinstance(write, Patch) and write.subresource for write in result.writes):
            jobset["status"] = _status(jobset, result)
            seen.append(_timeless(jobset["status"]))
    expected = [_timeless(status) for status in STATUSES["JobSet"] if status]
    assert [status for status in expected if status in seen] == seen
    assert seen[-1] == expected[-1]


@pytest.mark.parametrize("story", ["torch", "torchtune"])
def test_jobset_of_a_trainjob(story: str) -> None:
    """From TrainJob and runtime comes the JobSet, but for the variables and ports of a framework."""
    runtime = recorded_object(story, "ClusterTrainingRuntime")
    built = build_jobset(recorded_object(story, "TrainJob"), runtime["spec"])
    expected = recorded_object(story, "JobSet")
    assert built["metadata"]["ownerReferences"] == expected["metadata"]["ownerReferences"]
    assert _compared(built["spec"]) == _compared(expected["spec"])


def _compared(spec: Object) -> Object:
    compared: Object = yaml_files.load(yaml.safe_dump(spec))
    compared.pop("volumeClaimPolicies", None)
    for rjob in compared["replicatedJobs"]:
        template = rjob["template"]["spec"]["template"]
        template.setdefault("metadata", {})
        for container in template["spec"]["containers"]:
            for field in ("env", "envFrom", "ports"):
                container.pop(field, None)
            resources = container.setdefault("resources", {})
            if resources.get("limits"):
                resources["limits"] = {name: str(value) for name, value in resources["limits"].items()}
    return compared


def test_status_of_a_trainjob() -> None:
    """From each recorded JobSet status comes the TrainJob status that was recorded next."""
    trainjob = a_trainjob()
    seen = []
    for status in STATUSES["JobSet"]:
        jobset = _changed(recorded_object("torch", "JobSet"), **status)
        trainjob["status"] = next_status(trainjob, jobset, NOW)
        seen.append(trainjob["status"])
    wanted = [status.get("jobsStatus") for status in STATUSES["TrainJob"]]
    assert [status.get("jobsStatus") for status in seen] == wanted
    assert _timeless(seen[-1])["conditions"] == _timeless(STATUSES["TrainJob"][-1])["conditions"]
    assert not any("conditions" in status for status in seen[:-1])


def test_gang_that_does_not_fit() -> None:
    """Four pods on three nodes: nothing is bound, group and pods say what the real scheduler said."""
    group, *pods = recorded("does-not-fit")
    fresh = [_changed(pod, conditions=[]) for pod in pods]
    writes = _scheduled(*_nodes(3), {**group, "status": {}}, *fresh)
    assert not any(isinstance(write, Bind) for write in writes)
    said = {
        (write.resource.kind, write.item["metadata"]["name"]): condition["message"]
        for write in writes
        if isinstance(write, Patch)
        for condition in write.body["status"]["conditions"]
    }
    assert said == {
        (item["kind"], item["metadata"]["name"]): item["status"]["conditions"][0]["message"]
        for item in (group, *pods)
    }
    assert _scheduled(*_nodes(3), group, *pods) == ()


def _nodes(count: int) -> list[Object]:
    return [node(f"node-{index}", gpu=4) for index in range(1, count + 1)]


def _scheduled(*items: Object) -> tuple[Any, ...]:
    cache = Cache()
    for item in items:
        metadata = {"uid": item["metadata"]["name"], "resourceVersion": "1", **item["metadata"]}
        cache.put(by_kind(item["apiVersion"], item["kind"]), {**item, "metadata": metadata})
    return SchedulerController().reconcile(("cluster",), cache, NOW).writes
