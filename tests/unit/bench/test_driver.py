"""Owners are bound when the last of their pods is."""

from __future__ import annotations

import pytest

from bench.driver import BoundPods, NotBound, Timing

JOB, JOBSET = "batch.kubernetes.io/job-name", "jobset.sigs.k8s.io/jobset-name"


def bound(*pods: tuple[str, str, float]) -> BoundPods:
    """Pods as (uid, Job, seconds)."""
    noted = BoundPods()
    for uid, job, now in pods:
        noted.note({"uid": uid, "labels": {JOB: job}}, now)
    return noted


def test_the_last_pod_counts() -> None:
    """Of each owner."""
    pods = bound(("1", "a", 1.0), ("2", "b", 2.0), ("3", "a", 3.0), ("4", "b", 4.0))
    assert pods.wait(["a", "b"], 2, 0) == {"a": 3.0, "b": 4.0}


def test_a_pod_counts_once() -> None:
    """A watch that goes on delivers later changes of a pod too."""
    with pytest.raises(NotBound, match=r"1 of 1 not bound .* {'a': 1}"):
        bound(("1", "a", 1.0), ("1", "a", 2.0)).wait(["a"], 2, 0)


def test_pods_of_a_trainjob_belong_to_its_jobset() -> None:
    """Which has its name; its Jobs have others."""
    pods = BoundPods()
    pods.note({"uid": "1", "labels": {JOB: "llama-node-0", JOBSET: "llama"}}, 1.0)
    assert pods.wait(["llama"], 1, 0) == {"llama": 1.0}


def test_delays_and_wall() -> None:
    """From the request of each, and from the first request."""
    timing = Timing({"a": 0.0, "b": 1.0}, {"a": 5.0, "b": 3.0})
    assert (timing.delays, timing.wall) == ([5.0, 2.0], 5.0)
