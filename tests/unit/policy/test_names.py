"""Names of groups never change: they are pinned literally; and which pods and Jobs are stamped."""

from __future__ import annotations

from typing import Any

import pytest

from muster.objects.meta import ObjectRef
from muster.policy import group_labels
from muster.policy.group_labels import pod_group_name
from muster.policy.groups.manifests import label_value
from muster.policy.owners.job import job_workload_name
from tests.support.births import label_at_birth, stamp_at_birth
from tests.support.builders import (
    Modifier,
    a_job,
    a_pod,
    annotated,
    labelled,
    template_spec,
    unstamped,
    with_spec,
)

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


STAMP = {"podGroupName": "llama-main-33333333", "gate": True}
RESPONDERS: list[Any] = [{"name": "example.com/saver"}]


@pytest.mark.parametrize(
    ("modifier", "stamp"),
    [
        pytest.param(
            with_spec(priority=1_000_000_000), STAMP, id="the highest priority of a group is stamped"
        ),
        pytest.param(with_spec(priority=1_000_000_001), None, id="one above is left alone"),
        pytest.param(with_spec(evictionResponders=RESPONDERS), None, id="eviction responders are left alone"),
        pytest.param(with_spec(evictionResponders=[]), STAMP, id="an empty list of them is none"),
        pytest.param(with_spec(nodeName="node-1"), None, id="a pod that names its node is left alone"),
        pytest.param(with_spec(schedulingGroup={}), None, id="an empty schedulingGroup is the user's too"),
        pytest.param(
            labelled({group_labels.LEADER_GROUP: ""}), None, id="an empty leader's group is no DNS label"
        ),
        pytest.param(
            labelled({group_labels.JOBSET_UID: "short"}), None, id="a forged JobSet UID hides the Job's"
        ),
        pytest.param(
            annotated({group_labels.GATE_SWITCH: "off"}), STAMP | {"gate": False}, id="off means no gate"
        ),
    ],
)
def test_stamp(modifier: Modifier, stamp: dict[str, Any] | None) -> None:
    """A pod is stamped unless the API server would refuse it or another controller groups it."""
    assert stamp_at_birth(a_pod(None, 0, unstamped, modifier)) == stamp


@pytest.mark.parametrize(
    ("modifier", "label"),
    [
        pytest.param(
            with_spec(scheduling={}), None, id="an empty spec.scheduling already asks the Job controller"
        ),
        pytest.param(template_spec(schedulingGroup={}), None, id="an empty schedulingGroup is the user's"),
        pytest.param(template_spec(evictionResponders=RESPONDERS), None, id="eviction responders"),
        pytest.param(template_spec(evictionResponders=[]), "main", id="an empty list of responders is none"),
        pytest.param(template_spec(nodeName="node-1"), None, id="pods that name their node"),
        pytest.param(with_spec(completions=None), None, id="a Job without completions is no gang"),
    ],
)
def test_the_group_label_of_a_job(modifier: Modifier, label: str | None) -> None:
    """A Job is labelled unless it already says who groups its pods."""
    assert label_at_birth(a_job(modifier, label=None)) == label


def test_a_pod_of_a_uid_that_is_not_hexadecimal_has_no_stamp() -> None:
    """The API server gives no such UID, and the accounts may not create its fallback PodGroup."""
    labels = {group_labels.GROUP: "main", group_labels.JOB_NAME: "llama"}
    assert group_labels.stamped_name({**labels, group_labels.JOB_UID: "33333333"}) == "llama-main-33333333"
    assert group_labels.stamped_name({**labels, group_labels.JOB_UID: "my-own-uid-1"}) == ""
