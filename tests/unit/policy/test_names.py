"""Names of groups never change: they are pinned literally."""

from __future__ import annotations

import pytest

from muster.objects.meta import ObjectRef
from muster.policy.group_labels import pod_group_name
from muster.policy.groups.manifests import label_value
from muster.policy.owners.job import job_workload_name

UID = "6f2c1f9a-5d0b-4a52-9a3e-0c6a1f0f2b11"


@pytest.mark.parametrize(
    ("job", "uid", "name"),
    [
        pytest.param("demo", UID, "demo-5fd69458fc", id="a short name"),
        pytest.param("pi", "00000000-0000-0000-0000-000000000000", "pi-587798f5c5", id="a UID of zeros"),
        pytest.param(
            "train-llama-node-0",
            "b3e8d2a4-17c5-4f6e-8d90-5a7b6c4d3e2f",
            "train-llama-node-0-795fdf64b",
            id="a sum of nine digits makes a hash of nine characters",
        ),
        pytest.param(
            "j" * 253,
            "7d444840-9dc0-11d1-b245-5ffdce74fad2",
            "j" * 242 + "-7749f5d587",
            id="the longest name is cut to leave room for the hash",
        ),
    ],
)
def test_workload_name_of_a_job(job: str, uid: str, name: str) -> None:
    """The Workload of a Job has the name that the Job controller of Kubernetes 1.37.1 would give it."""
    assert job_workload_name(ObjectRef("batch/v1", "Job", "team-a", job, uid)) == name


@pytest.mark.parametrize(
    ("suffix", "name"),
    [
        pytest.param("", "llama-trainer-6f2c1f9a", id="one group of a kind has no suffix"),
        pytest.param("-3", "llama-trainer-6f2c1f9a-3", id="the index of a Job or block is the suffix"),
    ],
)
def test_pod_group_name(suffix: str, name: str) -> None:
    """A PodGroup is named after owner, group and the first eight characters of the owner's UID."""
    assert pod_group_name("llama", "trainer", UID, suffix) == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("w" * 63, "w" * 63, id="63 characters stay as they are"),
        pytest.param("w" * 64, "w" * 63, id="the 64th character is cut"),
        pytest.param("w" * 62 + "-5fd69458fc", "w" * 62, id="a value does not end in a dash"),
        pytest.param("w" * 61 + ".-x", "w" * 61, id="nor in a dot before one"),
    ],
)
def test_label_value(name: str, value: str) -> None:
    """A Workload's name is cut to what a label value may be."""
    assert label_value(name) == value
