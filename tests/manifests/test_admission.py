"""The policy files hold what they should; what they do is shown in tests/contract."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml

from eventing.local.manifests import EVENTING
from shared.policy import marks

FILES = sorted(path for path in (EVENTING / "admission").glob("*.yaml") if path.stem != "kustomization")


def test_there_are_the_two_policies() -> None:
    """mark-jobs and stamp-pods, one file each."""
    assert [path.stem for path in FILES] == ["mark-jobs", "stamp-pods"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_a_file_is_one_policy_with_its_binding(path: Path) -> None:
    """A policy without a binding acts nowhere."""
    policy, binding = yaml.safe_load_all(path.read_text())
    assert (policy["kind"], binding["kind"]) == ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    assert policy["metadata"]["name"] == f"muster-{path.stem}"
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_a_policy_acts_at_creation_and_fails_closed(path: Path) -> None:
    """Later is too late for both fields, and half a gang let through is worse than an error."""
    spec = next(yaml.safe_load_all(path.read_text()))["spec"]
    (rule,) = spec["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["CREATE"]
    assert spec["failurePolicy"] == "Fail"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_every_rule_says_what_breaks_without_it(path: Path) -> None:
    """A comment stands above each condition, and above what a policy does where it acts."""
    lines = path.read_text().splitlines()
    above = {line.strip(): before.strip() for before, line in itertools.pairwise(lines)}
    spec = next(yaml.safe_load_all(path.read_text()))["spec"]
    rules = [f"- name: {one['name']}" for one in spec["matchConditions"]]
    uncommented = [rule for rule in [*rules, "failurePolicy: Fail"] if not above[rule].startswith("#")]
    assert not uncommented


def test_the_policies_and_their_twin_use_the_same_keys() -> None:
    """Each key that the Python side reads is in the YAML, letter by letter."""
    stamp, mark = (
        (EVENTING / "admission" / f"{name}.yaml").read_text() for name in ("stamp-pods", "mark-jobs")
    )
    for key in (
        marks.GROUP,
        marks.GROUP_PER,
        marks.GROUP_SIZE,
        marks.LEADER_GROUP,
        marks.GATE_SWITCH,
        marks.GATE,
        marks.JOBSET_NAME,
        marks.JOBSET_UID,
        marks.JOB_INDEX,
        marks.JOB_NAME,
        marks.JOB_UID,
        marks.COMPLETION_INDEX,
    ):
        assert f"'{key}'" in stamp
    for key in (marks.GROUP, marks.JOBSET_UID, marks.REPLICATED_JOB, marks.ANCESTOR, marks.UPSTREAM_TEMPLATE):
        assert f"'{key}'" in mark
    assert f"{marks.NAMESPACE_SWITCH}: enabled" in mark
    assert str(marks.HIGHEST_PRIORITY) in stamp
