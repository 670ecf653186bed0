"""Group labels and stamps beyond the variants of tests/contract: limits, empty structs, stamps of others."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import group_labels
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
