"""Golden cases: each step plans the golden plan, and the laws hold."""

from __future__ import annotations

import pytest

from muster.runtime import steps
from muster.testing import check_laws, plan_of
from tests.replays.golden import HANDWRITTEN, RECORDED, ROOT, GoldenCase, cases

CASES = [pytest.param(case, id=f"{case.folder.parent.name}: {case.sentence}") for case in cases()]


@pytest.mark.parametrize("case", CASES)
def test_the_plan_is_the_one_that_was_reviewed(case: GoldenCase) -> None:
    """The plan equals plan.yaml; `make golden-update` rewrites it, and the diff must be reviewed."""
    assert case.planned() == case.plan_file.read_text()


@pytest.mark.parametrize("case", CASES)
def test_the_laws_hold(case: GoldenCase) -> None:
    """Every law holds for the step of the case; that the event is for the step, where it writes."""
    writes = plan_of(case.step, case.case).actions
    check_laws(case.step, case.case, without=() if writes else ("event_is_for_the_step",))


@pytest.mark.parametrize("name", steps.step_names())
def test_every_function_has_cases_that_act_and_cases_that_do_not(name: str) -> None:
    """Every step has cases with a plan and cases without."""
    outcomes = {
        case.planned().split("outcome: ")[1].split("\n")[0] for case in cases() if case.step.name == name
    }
    assert outcomes == {"Plan", "Nothing"}


def test_cases_are_of_functions_that_exist() -> None:
    """Every folder of cases belongs to a step."""
    folders = {path.parents[1].name for path in ROOT.glob("*/*/plan.yaml")}
    assert folders == set(steps.step_names())


def test_a_case_has_an_excerpt_or_files_of_its_own() -> None:
    """A case has either an excerpt or files written by hand, not both."""
    files = {case.folder: {path.name for path in case.folder.iterdir()} for case in cases()}
    assert [folder for folder, names in files.items() if names not in (RECORDED, HANDWRITTEN)] == []
    assert set(map(frozenset, files.values())) == {frozenset(RECORDED), frozenset(HANDWRITTEN)}
