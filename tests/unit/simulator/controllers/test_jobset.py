"""The simulated JobSet controller does what JobSet 0.12.0 does."""

from __future__ import annotations

from typing import Any

import pytest

from muster.cluster.interface import Object
from muster.simulator.controllers.framework.writes import Create, Delete, Patch, Result
from muster.simulator.controllers.jobset.controller import sync
from muster.simulator.controllers.jobset.jobs import PREFIX, child_job, with_defaults
from tests.unit.simulator.controllers.support import (
    NOW,
    an_object,
    changed,
    merge,
    owned_by,
    recorded,
    recorded_object,
)


def _replicated_job(name: str, replicas: int = 1, **fields: Any) -> Object:
    pod = {"containers": [{"name": "node", "image": "example"}]}
    job = {"parallelism": 2, "completions": 2, "template": {"spec": pod}}
    return {"name": name, "replicas": replicas, "template": {"spec": job}, **fields}


def _jobset(*replicated_jobs: Object, **spec: Any) -> Object:
    spec = {"replicatedJobs": list(replicated_jobs or (_replicated_job("node"),)), **spec}
    return an_object("jobset.x-k8s.io/v1alpha2", "JobSet", "train", spec)


def _jobs(jobset: Object, result: Result) -> dict[str, Object]:
    """The Jobs a result creates, as the API server would store them."""
    return {
        write.body["metadata"]["name"]: an_object(
            "batch/v1",
            "Job",
            write.body["metadata"]["name"],
            write.body["spec"],
            labels=write.body["metadata"]["labels"],
            ownerReferences=owned_by(jobset),
        )
        for write in result.writes
        if isinstance(write, Create)
    }


def _status(jobset: Object, result: Result) -> Object:
    """The JobSet's status after a result."""
    status: Object = jobset.get("status") or {}
    for write in result.writes:
        if isinstance(write, Patch) and write.subresource == "status" and write.name == "train":
            status = merge(status, write.body["status"])
    return status


def _after(jobset: Object, result: Result) -> Object:
    return {**jobset, "status": _status(jobset, result)}


def _ready(job: Object) -> Object:
    return changed(job, active=2, ready=2)


def _over(job: Object, kind: str, reason: str = "CompletionsReached") -> Object:
    condition = {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": "over",
        "lastTransitionTime": "2027-01-15T08:00:01Z",
    }
    return changed(job, conditions=[condition])


def _conditions(status: Object) -> dict[str, tuple[str, str]]:
    return {
        condition["type"]: (condition["status"], condition["reason"])
        for condition in status.get("conditions") or []
    }


@pytest.mark.parametrize(
    ("story", "name"),
    [
        pytest.param("torch", "llama-node-0", id="the torch Job is the recorded one"),
        pytest.param(
            "torchtune", "qwen-dataset-initializer-0", id="the dataset initializer is the recorded one"
        ),
        pytest.param("torchtune", "qwen-model-initializer-0", id="the model initializer is the recorded one"),
        pytest.param("torchtune", "qwen-node-0", id="the torchtune Job is the recorded one"),
    ],
)
def test_child_job_carries_the_recorded_keys(story: str, name: str) -> None:
    """Names, owner, labels and annotations of Job and pod template are those that were recorded."""
    jobset = with_defaults(recorded_object(story, "JobSet"))
    expected = recorded_object(story, "Job", name)
    made = {
        job["metadata"]["name"]: job
        for rjob in jobset["spec"]["replicatedJobs"]
        for job in (child_job(jobset, rjob, 0),)
    }[name]
    for field in ("labels", "annotations", "ownerReferences"):
        assert made["metadata"][field] == expected["metadata"][field]
    template, recorded_template = made["spec"]["template"], expected["spec"]["template"]
    assert template["metadata"]["annotations"] == recorded_template["metadata"]["annotations"]
    assert template["metadata"]["labels"] == _without_admitted(recorded_template["metadata"]["labels"])
    assert template["spec"]["subdomain"] == recorded_template["spec"]["subdomain"]
    assert template["spec"].get("volumes") == recorded_template["spec"].get("volumes")


def _without_admitted(labels: dict[str, str]) -> dict[str, str]:
    """The labels but those that the API server and the admission policies add to a Job's template."""
    added = ("batch.kubernetes.io/", "controller-uid", "job-name", "muster.dev/")
    return {key: value for key, value in labels.items() if not key.startswith(added)}


def test_indexes_count_through_all_replicated_jobs_and_through_groups() -> None:
    """job-global-index runs through the JobSet, job-group-index through the replicatedJobs of one group."""
    jobset = with_defaults(
        _jobset(
            _replicated_job("a", 2, groupName="left"),
            _replicated_job("b", 1, groupName="right"),
            _replicated_job("c", 2, groupName="left"),
        )
    )
    labels = child_job(jobset, jobset["spec"]["replicatedJobs"][2], 1)["metadata"]["labels"]
    wanted = {
        "job-index": "1",
        "job-global-index": "4",
        "global-replicas": "5",
        "job-group-index": "3",
        "group-replicas": "4",
        "replicatedjob-replicas": "2",
    }
    assert {key: labels[PREFIX + key] for key in wanted} == wanted


def test_all_jobs_are_made_at_once_without_an_order() -> None:
    """One Job per replica of every replicatedJob, and a status that counts none of them yet."""
    jobset = _jobset(_replicated_job("a", 2), _replicated_job("b"))
    result = sync(jobset, [], NOW)
    assert list(_jobs(jobset, result)) == ["train-a-0", "train-a-1", "train-b-0"]
    status = _status(jobset, result)
    assert status["restarts"] == 0
    assert [entry["name"] for entry in status["replicatedJobsStatus"]] == ["b", "a"]
    assert "conditions" not in status


@pytest.mark.parametrize(
    ("asks_for", "states", "starts"),
    [
        pytest.param("Ready", ["running"], False, id="Ready is not met while a pod is missing"),
        pytest.param("Ready", ["ready"], True, id="Ready is met when all pods are ready"),
        pytest.param("Ready", ["complete"], True, id="Ready is met when the Job is over"),
        pytest.param("Complete", ["ready"], False, id="Complete is not met while it runs"),
        pytest.param("Complete", ["complete"], True, id="Complete is met when the Job has succeeded"),
    ],
)
def test_depends_on_holds_a_replicated_job_back(asks_for: str, states: list[str], starts: bool) -> None:
    """A Job that depends on another does not exist before the other is where it must be."""
    first = _replicated_job("init")
    second = _replicated_job("node", dependsOn=[{"name": "init", "status": asks_for}])
    jobset = _jobset(first, second)
    created = sync(jobset, [], NOW)
    assert list(_jobs(jobset, created)) == ["train-init-0"]
    job = _jobs(jobset, created)["train-init-0"]
    now = {
        "running": changed(job, active=2, ready=1),
        "ready": _ready(job),
        "complete": _over(job, "Complete"),
    }
    later = sync(_after(jobset, created), [now[state] for state in states], NOW)
    assert list(_jobs(jobset, later)) == (["train-node-0"] if starts else [])


def test_in_order_startup_makes_one_replicated_job_after_another() -> None:
    """With startupPolicy InOrder the second waits for the first, and a condition says which stage it is."""
    jobset = _jobset(
        _replicated_job("a"), _replicated_job("b"), startupPolicy={"startupPolicyOrder": "InOrder"}
    )
    first = sync(jobset, [], NOW)
    assert list(_jobs(jobset, first)) == ["train-a-0"]
    jobset = _after(jobset, first)
    assert _conditions(jobset["status"])["StartupPolicyInProgress"][0] == "True"
    a = _ready(_jobs(jobset, first)["train-a-0"])
    second = sync(jobset, [a], NOW)
    assert list(_jobs(jobset, second)) == ["train-b-0"]
    b = _ready(_jobs(jobset, second)["train-b-0"])
    done = _after(_after(jobset, second), sync(_after(jobset, second), [a, b], NOW))
    assert _conditions(done["status"])["StartupPolicyCompleted"][0] == "True"
    assert _conditions(done["status"])["StartupPolicyInProgress"][0] == "False"


def test_suspended_jobset_makes_suspended_jobs_but_none_that_wait_for_others() -> None:
    """Jobs of a suspended JobSet exist at once, suspended; those with an unmet dependsOn do not."""
    waiting = _replicated_job("node", dependsOn=[{"name": "init", "status": "Complete"}])
    jobset = _jobset(_replicated_job("init"), waiting, suspend=True)
    result = sync(jobset, [], NOW)
    jobs = _jobs(jobset, result)
    assert list(jobs) == ["train-init-0"]
    assert jobs["train-init-0"]["spec"]["suspend"] is True
    assert _conditions(_status(jobset, result)) == {"Suspended": ("True", "SuspendedJobs")}


def test_suspending_and_resuming_reaches_the_jobs() -> None:
    """Suspending a running JobSet suspends its Jobs; resuming brings new labels and selectors along."""
    jobset = _jobset()
    created = sync(jobset, [], NOW)
    (job,) = _jobs(jobset, created).values()
    suspended = merge(_after(jobset, created), {"spec": {"suspend": True}})
    turned_off = sync(suspended, [job], NOW)
    assert [write.body["spec"] for write in _job_patches(turned_off)] == [{"suspend": True}]
    suspended = _after(suspended, turned_off)
    job = changed(merge(job, {"spec": {"suspend": True}}), startTime="2027-01-15T08:00:00Z")
    replicated = _replicated_job("node")
    replicated["template"]["spec"]["template"] |= {"metadata": {"labels": {"queue": "x"}}}
    replicated["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"rack": "1"}
    resumed = merge(suspended, {"spec": {"suspend": False, "replicatedJobs": [replicated]}})
    result = sync(resumed, [job], NOW)
    clears, turns_on = _job_patches(result)
    assert (clears.subresource, clears.body["status"]) == ("status", {"startTime": None})
    template = turns_on.body["spec"]["template"]
    assert turns_on.body["spec"]["suspend"] is False
    assert template["spec"] == {"nodeSelector": {"rack": "1"}}
    assert template["metadata"]["labels"]["queue"] == "x"
    assert _conditions(_status(resumed, result))["Suspended"] == ("False", "ResumeJobs")


def _job_patches(result: Result) -> list[Patch]:
    return [write for write in result.writes if isinstance(write, Patch) and write.name == "train-node-0"]


def test_success_of_all_jobs_completes_the_jobset() -> None:
    """The JobSet is Completed when every Job has succeeded."""
    jobset = _jobset(_replicated_job("node", 2))
    jobs = list(_jobs(jobset, sync(jobset, [], NOW)).values())
    half = sync(jobset, [_over(jobs[0], "Complete"), _ready(jobs[1])], NOW)
    assert "conditions" not in _status(jobset, half)
    done = sync(jobset, [_over(job, "Complete") for job in jobs], NOW)
    assert _conditions(_status(jobset, done)) == {"Completed": ("True", "AllJobsCompleted")}
    assert _status(jobset, done)["terminalState"] == "Completed"


def test_success_of_the_launcher_alone_completes_and_ends_the_rest() -> None:
    """A success policy that names the launcher completes an MPI JobSet; the nodes' Jobs are deleted."""
    policy = {"operator": "All", "targetReplicatedJobs": ["launcher"]}
    jobset = _jobset(_replicated_job("node"), _replicated_job("launcher"), successPolicy=policy)
    jobs = _jobs(jobset, sync(jobset, [], NOW))
    standing = [_ready(jobs["train-node-0"]), _over(jobs["train-launcher-0"], "Complete")]
    completed = _after(jobset, sync(jobset, standing, NOW))
    assert _conditions(completed["status"])["Completed"][0] == "True"
    (deletion,) = sync(completed, standing, NOW).writes
    assert isinstance(deletion, Delete)
    assert (deletion.name, deletion.propagation) == ("train-node-0", "Foreground")


def test_failed_job_without_a_policy_fails_the_jobset() -> None:
    """Without a failurePolicy one failed Job is the end."""
    jobset = _jobset()
    (job,) = _jobs(jobset, sync(jobset, [], NOW)).values()
    status = _status(jobset, sync(jobset, [_over(job, "Failed", "BackoffLimitExceeded")], NOW))
    assert _conditions(status) == {"Failed": ("True", "FailedJobs")}
    assert "(first failed job: train-node-0)" in status["conditions"][0]["message"]


def test_restart_deletes_all_jobs_and_makes_them_again_with_the_next_attempt() -> None:
    """With maxRestarts the failure counts, every Job goes, and its successor has its name and attempt 1."""
    jobset = _jobset(_replicated_job("node", 2), failurePolicy={"maxRestarts": 1})
    first = _jobs(jobset, sync(jobset, [], NOW))
    standing = [_over(first["train-node-0"], "Failed", "BackoffLimitExceeded"), _ready(first["train-node-1"])]
    restarting = _after(jobset, sync(jobset, standing, NOW))
    assert restarting["status"]["restarts"] == 1
    assert _conditions(restarting["status"])["Restarting"] == ("True", "DefaultFailurePolicy")
    cleared = sync(restarting, standing, NOW)
    assert [write.name for write in cleared.writes if isinstance(write, Delete)] == [
        "train-node-0",
        "train-node-1",
    ]
    assert _jobs(restarting, cleared) == {}
    one_gone = sync(restarting, standing[1:], NOW)
    second = _jobs(restarting, one_gone)
    assert list(second) == ["train-node-0"]
    assert second["train-node-0"]["metadata"]["labels"][PREFIX + "restart-attempt"] == "1"
    failed_again = sync(restarting, [_over(second["train-node-0"], "Failed", "x")], NOW)
    assert _conditions(_status(restarting, failed_again))["Failed"] == ("True", "ReachedMaxRestarts")


@pytest.mark.parametrize(
    ("patterns", "reason"),
    [
        (["^over$"], "FailJobSetFailurePolicyAction"),
        (["(", r"\Aov"], "FailJobSetFailurePolicyAction"),
        (["^ver"], "FailurePolicy_others"),
        (["("], "FailurePolicy_others"),
    ],
)
def test_rules_of_failures_match_their_messages(patterns: list[str], reason: str) -> None:
    """A rule applies where a pattern matches the message; a pattern that Go cannot read matches nothing."""
    rules = [
        {"name": "fatal", "action": "FailJobSet", "onJobFailureMessagePatterns": patterns},
        {"name": "others", "action": "RestartJobSet"},
    ]
    jobset = _jobset(failurePolicy={"maxRestarts": 1, "rules": rules})
    (job,) = _jobs(jobset, sync(jobset, [], NOW)).values()
    jobset = _after(jobset, sync(jobset, [_over(job, "Failed", "BackoffLimitExceeded")], NOW))
    assert [found for _, found in _conditions(jobset["status"]).values()] == [reason]


def test_blocking_recreate_waits_until_the_last_old_job_is_gone() -> None:
    """With BlockingRecreate nothing is made while a Job of the attempt before is left."""
    policy = {"maxRestarts": 1, "restartStrategy": "BlockingRecreate"}
    jobset = changed(_jobset(_replicated_job("node", 2), failurePolicy=policy))
    old = _jobs(jobset, sync(jobset, [], NOW))
    restarting = changed(jobset, restarts=1, replicatedJobsStatus=[])
    assert _jobs(restarting, sync(restarting, [old["train-node-1"]], NOW)) == {}
    assert list(_jobs(restarting, sync(restarting, [], NOW))) == ["train-node-0", "train-node-1"]


def test_statuses_follow_the_job_as_recorded() -> None:
    """The JobSet's counts after each recorded Job status are among the recorded ones, in their order."""
    stories = {entry["kind"]: entry["statuses"] for entry in recorded("torch-statuses")}
    jobset = recorded_object("torch", "JobSet")
    jobset.pop("status", None)
    seen: list[Object] = []
    for status in stories["Job"]:
        job = changed(recorded_object("torch", "Job"), **status)
        result = sync(jobset, [job], NOW)
        body = next((w.body for w in result.writes if isinstance(w, Patch) and w.subresource), None)
        if body:
            jobset["status"] = merge(jobset.get("status") or {}, body["status"])
            seen.append(_timeless(jobset["status"]))
    expected = [_timeless(status) for status in stories["JobSet"] if status]
    assert [status for status in expected if status in seen] == seen
    assert seen[-1] == expected[-1]


def _timeless(status: Object) -> Object:
    conditions = [{**condition, "lastTransitionTime": ""} for condition in status.get("conditions") or []]
    return {**status, **({"conditions": conditions} if conditions else {})}
