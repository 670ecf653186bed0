"""Every golden case: its plan is the one that was reviewed, and the laws hold for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from muster import steps
from muster.runtime.step import Step
from tests.replays.golden import HANDWRITTEN, RECORDED, ROOT, Case, cases
from tests.replays.laws import LAWS

CASES = [pytest.param(case, id=f"{case.folder.parent.name}: {case.sentence}") for case in cases()]


@pytest.mark.parametrize("case", CASES)
def test_the_plan_is_the_one_that_was_reviewed(case: Case) -> None:
    """`make golden-update` writes plan.yaml anew; the diff is what has to be reviewed."""
    assert case.planned() == case.plan_file.read_text()


@pytest.mark.parametrize("case", CASES)
def test_the_laws_hold(case: Case) -> None:
    """Same input same plan; twice is once; older is nothing; gone is nothing; arguments stay as they are."""
    for law in LAWS:
        law(case.step, case)


@pytest.mark.parametrize("name", steps.step_names())
def test_every_function_has_cases_that_act_and_cases_that_do_not(name: str) -> None:
    """An empty set of cases would prove nothing."""
    outcomes = {
        case.planned().split("outcome: ")[1].split("\n")[0] for case in cases() if case.step.name == name
    }
    assert outcomes == {"Plan", "Nothing"}


def test_a_folder_without_cases_is_seen(tmp_path: Path) -> None:
    """The test above fails where the folders are not found, as it would with these."""
    assert cases(tmp_path) == []


def test_cases_are_of_functions_that_exist() -> None:
    """A folder of cases that no function owns would never be run."""
    folders = {path.parents[1].name for path in ROOT.glob("*/*/plan.yaml")}
    assert folders == set(steps.step_names())


def test_a_case_has_an_excerpt_or_files_of_its_own() -> None:
    """Not both: a cluster.yaml beside an excerpt of a recording would be read by people and by no test."""
    files = {case.folder: {path.name for path in case.folder.iterdir()} for case in cases()}
    assert [folder for folder, names in files.items() if names not in (RECORDED, HANDWRITTEN)] == []
    assert set(map(frozenset, files.values())) == {frozenset(RECORDED), frozenset(HANDWRITTEN)}


def test_all_steps_are_found() -> None:
    """The cases are run on the steps of functions/, by their own names."""
    assert all(isinstance(steps.step_named(name), Step) for name in steps.step_names())
