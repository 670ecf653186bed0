"""The policy files hold what they should; what they do is shown in tests/contract."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from muster.data import EVENTING
from muster.policy import group_labels

FOLDERS = (EVENTING / "admission", EVENTING / "overlays" / "native-jobs")
FILES = sorted(path for folder in FOLDERS for path in folder.glob("*.yaml") if path.stem != "kustomization")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_a_file_is_one_policy_with_its_binding(path: Path) -> None:
    """It acts at creation and fails closed: half a gang let through is worse than an error.

    schedule-jobs alone lets through: on Kubernetes 1.36, which does not know its field, it always fails.
    """
    policy, binding = yaml.safe_load_all(path.read_text())
    kind = "ValidatingAdmissionPolicy" if path.stem == "check-gangs" else "MutatingAdmissionPolicy"
    assert (policy["kind"], binding["kind"]) == (kind, f"{kind}Binding")
    assert policy["metadata"]["name"] == f"muster-{path.stem}"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]

    spec = policy["spec"]
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["CREATE", *["UPDATE"] * (path.stem == "mark-jobsets")]
    assert spec["failurePolicy"] == ("Ignore" if path.stem == "schedule-jobs" else "Fail")


def test_the_policies_and_the_planner_use_the_same_keys() -> None:
    """Each key that the planner reads is in the YAML, letter by letter."""
    stamp, label = (
        (EVENTING / "admission" / f"{name}.yaml").read_text() for name in ("stamp-pods", "mark-jobsets")
    )
    names = group_labels
    mine = (names.GROUP, names.GROUP_PER, names.GROUP_SIZE, names.LEADER_GROUP, names.LEADER_GROUP_PER)
    pods = (names.GATE_SWITCH, names.GATE, names.JOB_INDEX, names.JOB_NAME, names.JOB_UID)
    for key in (*mine, *pods, names.JOBSET_NAME, names.JOBSET_UID, names.COMPLETION_INDEX):
        assert f"'{key}'" in stamp
    for key in (*mine[:4], names.ANCESTOR, names.UPSTREAM_TEMPLATE):
        assert f"'{key}'" in label
    assert f"{group_labels.NAMESPACE_SWITCH}: enabled" in label


def test_schedule_jobs_checks_the_group_labels_of_the_planner() -> None:
    """Each key that decides whether Muster would group a plain Job is in schedule-jobs."""
    text = (EVENTING / "admission" / "schedule-jobs.yaml").read_text()
    for key in (group_labels.GROUP, group_labels.LEADER_GROUP, group_labels.JOBSET_UID):
        assert f"'{key}'" in text
