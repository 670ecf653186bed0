"""Names of groups never change: they are pinned literally; and which pods and Jobs are stamped.

The other variants of the admission policies are in tests/contract.
"""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.meta import ObjectRef
from muster.policy import group_labels
from muster.policy.groups.manifests import label_value
from muster.policy.owners.job import job_workload_name
from tests.support.births import label_at_birth, stamp_at_birth
from tests.support.builders import Modifier, a_job, a_pod, labelled, template_spec, unstamped, with_spec

UID = "6f2c1f9a-5d0b-4a52-9a3e-0c6a1f0f2b11"


@pytest.mark.parametrize(
    ("job", "uid", "name"),
    [
        ("demo", UID, "demo-5fd69458fc"),
        ("pi", "00000000-0000-0000-0000-000000000000", "pi-587798f5c5"),
        ("train-llama-node-0", "b3e8d2a4-17c5-4f6e-8d90-5a7b6c4d3e2f", "train-llama-node-0-795fdf64b"),
        ("j" * 253, "7d444840-9dc0-11d1-b245-5ffdce74fad2", "j" * 242 + "-7749f5d587"),
    ],
)
def test_workload_name_of_a_job(job: str, uid: str, name: str) -> None:
    """The name that the Job controller of Kubernetes 1.37.1 would give it; the longest is cut."""
    assert job_workload_name(ObjectRef("batch/v1", "Job", "team-a", job, uid)) == name


@pytest.mark.parametrize(
    ("name", "value"),
    [("w" * 64, "w" * 63), ("w" * 62 + "-5fd69458fc", "w" * 62), ("w" * 61 + ".-x", "w" * 61)],
)
def test_label_value(name: str, value: str) -> None:
    """A Workload's name is cut to 63 characters, the last of them a letter or digit."""
    assert label_value(name) == value


RESPONDERS: list[Any] = [{"name": "example.com/saver"}]


@pytest.mark.parametrize(
    ("modifier", "stamped"),
    [
        (with_spec(priority=1_000_000_000), True),
        (with_spec(priority=1_000_000_001), False),
        (with_spec(evictionResponders=RESPONDERS), False),
        (with_spec(evictionResponders=[]), True),
        (with_spec(schedulingGroup={}), False),
        (labelled({group_labels.LEADER_GROUP: ""}), False),
        (labelled({group_labels.JOBSET_UID: "short"}), False),
    ],
)
def test_stamp(modifier: Modifier, stamped: bool) -> None:
    """A pod is stamped unless the API server would refuse it or another controller groups it."""
    stamp = {"podGroupName": "llama-main-33333333", "gate": True} if stamped else None
    assert stamp_at_birth(a_pod(None, 0, unstamped, modifier)) == stamp


@pytest.mark.parametrize(
    ("modifier", "label"),
    [
        (with_spec(scheduling={}), None),
        (template_spec(schedulingGroup={}), None),
        (template_spec(evictionResponders=RESPONDERS), None),
        (template_spec(evictionResponders=[]), "main"),
        (template_spec(nodeName="node-1"), None),
        (with_spec(completions=None), None),
    ],
)
def test_the_group_label_of_a_job(modifier: Modifier, label: str | None) -> None:
    """A Job is labelled unless it already says who groups its pods, or is no gang."""
    assert label_at_birth(a_job(modifier, label=None)) == label
