"""What Knative's broker answered and delivered in each contract case: `answers/<subject>.json`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.contract.answers import paths
from tests.contract.broker.case import BrokerCase, Entries

ANSWERS = Path(__file__).parent / "answers"


def read(case: BrokerCase) -> Entries | None:
    """Return the recording of Knative's broker; None if the case was never recorded."""
    path = ANSWERS / f"{case.subject}.json"
    if not path.exists():
        return None
    recorded: dict[str, Entries] = json.loads(path.read_text())
    return recorded.get(case.key)


def write(recorded: dict[str, dict[str, Entries]]) -> None:
    """Write the recordings by subject and case; delete files of subjects that no longer exist."""
    ANSWERS.mkdir(exist_ok=True)
    for old in ANSWERS.glob("*.json"):
        if old.stem not in recorded:
            old.unlink()
    for subject, entries in recorded.items():
        (ANSWERS / f"{subject}.json").write_text(json.dumps(entries, indent=1, sort_keys=True) + "\n")


def difference(wanted: Entries, got: Entries) -> str:
    """Return a line for every field of two recordings that differs; empty for none."""
    return "\n".join(paths(wanted, got))
