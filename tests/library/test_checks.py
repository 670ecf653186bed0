"""What `muster.testing` tells of a step that does not fit, and the reply events that a step can be given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from muster.cli.new_step import REACTIONS, write_step
from muster.runtime.steps import step_named
from muster.testing import Case, plan_of, reply, shipped

FAILING = """
import pytest
from pathlib import Path
from muster.testing import check_laws, check_manifests, load_step

STEP = load_step(Path(__file__).parent / "my_step")

def test_manifests():
    check_manifests(Path(__file__).parent / "my_step")

def test_laws(muster_recording):
    check_laws(STEP, muster_recording("torch").case("Job add", moment="all bound"))

@pytest.mark.muster(overlay="nowhere")
def test_overlay_of_a_test(muster_stack):
    pass

def test_overlay_of_the_settings(muster_stack):
    pass
"""
IGNORED = "NotForThisStep Job team-a/llama-node-0 add"


def test_a_check_that_fails_says_what_lacks_and_shows_no_source(tmp_path: Path) -> None:
    """All that is wrong with the manifests, an event that is ignored, paths from the test or the settings."""
    tests = tmp_path / "tests"
    folder = tests / "my_step"
    write_step(folder, REACTIONS["podgroup-bound"])
    for name, before, after in (("role", "patch", "watch"), ("kustomization", "- trigger.yaml\n", "")):
        file = folder / f"{name}.yaml"
        file.write_text(file.read_text().replace(before, after))
    (tests / "test_failing.py").write_text(FAILING)
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmuster_overlay = "elsewhere"\n')
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "tests/test_failing.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = [line.removeprefix("E").strip() for line in ran.stdout.splitlines() if line.startswith("E ")]
    rule = "{{apiGroups: ['scheduling.k8s.io'], resources: [podgroups], verbs: [{}]}}"
    assert told == [
        f"AssertionError: {folder}: no Trigger has the subscriber 'my-step'",
        f"{folder}: the role lacks {rule.format('patch')}",
        f"{folder}: no permission of the step needs {rule.format('watch')}",
        f"AssertionError: my_step breaks the law event_is_for_the_step: the predicate ignores it: {IGNORED}",
    ]
    assert "shared/muster" not in ran.stdout
    assert f"\n{tests}/nowhere: there is no such overlay\n" in ran.stdout
    assert f"\n{tmp_path}/elsewhere: there is no such overlay\n" in ran.stdout


def test_a_reply_is_the_event_of_the_steps_that_subscribe_to_it() -> None:
    """The reply of create_workload's plan makes create_pod_groups look at that Workload's owner."""
    case = shipped("torch").case("JobSet add", moment="before create_workload")
    told = plan_of(step_named("create_workload"), case).decision.reply
    assert told is not None
    answer = plan_of(step_named("create_pod_groups"), Case.of(reply("create_workload", told), case.objects))
    assert answer.reason == "WaitingForPodGroup"
