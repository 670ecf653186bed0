"""Pods with labels of another owner, after which stamp-pods names their group, run all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muster.objects.resources import JOBSETS, PODS
from muster.policy.group_labels import COMPLETION_INDEX, GROUP, GROUP_SIZE, JOB_NAME, JOB_UID
from muster.testing import RunningStack
from tests.support.builders import (
    Object,
    a_job,
    a_jobset,
    a_replicated_job,
    submitted,
    template_labelled,
    with_spec,
)

pytestmark = pytest.mark.usefixtures("in_process")

OLDER = {JOB_NAME: "older", JOB_UID: "11111111-0000-0000-0000-000000000000"}
NOT_INDEXED = with_spec(completionMode="NonIndexed")
INDEX_5 = template_labelled({GROUP: "main", GROUP_SIZE: "2", COMPLETION_INDEX: "5"})


@pytest.fixture(name="stack", scope="module")
def _stack() -> Iterator[RunningStack]:
    with RunningStack() as stack:
        yield stack


def run(stack: RunningStack, namespace: str) -> bool:
    """Whether there are pods and all of them have a node; after a sweep."""
    stack.settle()
    stack.sweep()
    pods = [pod for pod in stack.all("Pod", namespace) if "deletionTimestamp" not in pod["metadata"]]
    return bool(pods) and all(pod["spec"].get("nodeName") for pod in pods)


@pytest.mark.parametrize(
    ("name", "job"),
    [
        pytest.param(
            "an-older-job",
            a_job(
                template_labelled({GROUP: "main", **OLDER}),
                with_spec(manualSelector=True, selector={"matchLabels": OLDER}),
            ),
            id="a manualSelector and the labels of a Job that is gone",
        ),
        pytest.param("an-index", a_job(NOT_INDEXED, INDEX_5), id="the index of a pod that was copied"),
    ],
)
def test_a_job_with_labels_of_another_runs(stack: RunningStack, name: str, job: Object) -> None:
    """In fallback PodGroups, and its condition says why."""
    stack.create_namespace(name)
    stack.create(submitted(job), name)
    stack.until("runs", lambda: run(stack, name))
    stored = stack.get("Job", "llama", name)
    assert stored is not None
    reasons = {condition["type"]: condition["reason"] for condition in stored["status"]["conditions"]}
    assert reasons["muster.dev/PodGroupsReady"] == "NotMarked"


def test_jobs_whose_jobset_left_them_behind_go_on(stack: RunningStack) -> None:
    """All pods are replaced, as in a drain: their group is still named after the JobSet."""
    namespace = "orphaned"
    stack.create_namespace(namespace)
    jobset = a_jobset(a_replicated_job(replicas=2))
    stack.create(submitted(jobset), namespace)
    stack.until("runs", lambda: run(stack, namespace))
    jobsets = JOBSETS.path("llama", namespace)
    assert deleted(stack, jobsets, propagationPolicy="Orphan")
    stack.sweep()
    first = {pod["metadata"]["name"] for pod in stack.all("Pod", namespace)}
    for name in first:
        assert deleted(stack, PODS.path(name, namespace), gracePeriodSeconds="0")
    stack.until("all run again", lambda: run(stack, namespace))
    assert first.isdisjoint(pod["metadata"]["name"] for pod in stack.all("Pod", namespace))


def deleted(stack: RunningStack, path: str, **parameters: str) -> bool:
    """Delete an object; returns whether the API server did."""
    status, *_ = stack.server.answer("DELETE", path, parameters, {}, b"")
    return status == 200
