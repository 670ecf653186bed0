"""Reply events match their schemas, and every reply that a step can send has one."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from muster.events.replies import reply_event
from muster.testing import plan_of
from tests.replays.golden import GoldenCase, cases
from tests.schemas.replies import FOLDER, REPLIES, schemas

CASES = cases()
NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def _replies(case: GoldenCase) -> list[tuple[str, Any]]:
    """Return type and data of the reply events to a case, as they are sent."""
    replies = []
    for decision in plan_of(case.step, case.case).decisions:
        if decision.reply is not None:
            sent = reply_event(decision.reply, step=case.step.name, event_id="1", now=NOW)
            replies.append((sent.headers["ce-type"], json.loads(sent.body)))
    return replies


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.folder.parent.name}: {case.sentence}")
def test_the_reply_of_every_golden_case_fits_its_schema(case: GoldenCase) -> None:
    """The type of each reply is known, and its data has exactly the fields of the schema."""
    for kind, data in _replies(case):
        REPLIES[kind].model_validate(data)


def test_the_golden_cases_make_every_reply_that_is_promised() -> None:
    """Cases cover every type but that of a grouping failure, and those of an event alone."""
    made = {kind for case in CASES for kind, _ in _replies(case)}
    of_events = {"dev.muster.resize_gang.look", "dev.muster.patch_pods.added"}
    assert made == set(REPLIES) - of_events - {"dev.muster.create_workload.gave-up"}


def test_every_reply_in_the_code_has_a_schema() -> None:
    """Every reply in the source of the steps has a schema."""
    files = (*Path("shared/muster/policy").rglob("*.py"), *Path("functions").rglob("step.py"))
    source = "".join(path.read_text() for path in files)
    words = set(re.findall(r'Reply\(\s*"([a-z-]+)"(?: if [^,]+ else "([a-z-]+)")?', source))
    said = {word for pair in words for word in pair if word}
    assert said == {name.rpartition(".")[2] for name in REPLIES}


@pytest.mark.parametrize("path", sorted(schemas()), ids=lambda path: str(path.name))
def test_the_files_are_current(path: Path) -> None:
    """The schema files are up to date; `python -m tests.schemas.replies` writes them."""
    assert path.read_text() == schemas()[path]


def test_no_file_is_left_over() -> None:
    """No schema file is left over."""
    assert set(FOLDER.glob("*")) == set(schemas())
