"""The recorded answers of the real servers to the contract cases: `answers/<release>/<subject>.json`.

The files contain complete answers, each in a line. Two answers are equal if status, reason, details, the
reason and field of each cause and the objects are equal; messages are not compared, except for READ_WORDS.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

from tests.contract import cases
from tests.contract.case import ContractCase

ANSWERS = Path(__file__).parent / "answers"
RELEASES = ("1.37", "1.36")

Entries = list[dict[str, Any]]

READ_WORDS = (
    # muster/cluster/execute.py: an Invalid about `metadata.uid` means that a pod of another UID has the name.
    "metadata.uid",
    # muster/cli/check.py: a list fails with these words if an older release stored objects.
    "is registered for version",
)
"""Every part of an API server's message that Muster's code parses."""


def all_cases(release: str) -> list[ContractCase]:
    """Return the cases of every subject that hold in a release."""
    every_case: list[ContractCase] = []
    for module in pkgutil.iter_modules(cases.__path__, f"{cases.__name__}."):
        every_case += importlib.import_module(module.name).CASES
    keys = [(case.subject, case.key) for case in every_case]
    assert len(keys) == len(set(keys)), "two cases of one subject have the same name"
    chosen = [case for case in every_case if release in case.releases]
    assert chosen, f"no contract case holds in {release}"
    return chosen


def read(release: str, case: ContractCase) -> Entries | None:
    """Return the recorded answers of the real server to a case; None if it was never recorded."""
    path = _path(release, case.subject)
    if not path.exists():
        return None
    recorded: dict[str, Entries] = json.loads(path.read_text())
    return recorded.get(case.key)


def write(release: str, recorded: dict[str, dict[str, Entries]]) -> None:
    """Write the answers of a release by subject and case; delete files of subjects that no longer exist."""
    folder = ANSWERS / release
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        if old.stem not in recorded:
            old.unlink()
    for subject, answers in recorded.items():
        _path(release, subject).write_text(_text(answers))


def _text(answers: dict[str, Entries]) -> str:
    """Return the answers as JSON with a line for each answer."""
    cases = [
        f"{json.dumps(case)}: [\n" + ",\n".join(json.dumps(one, sort_keys=True) for one in entries) + "\n]"
        for case, entries in sorted(answers.items())
    ]
    return "{\n" + ",\n".join(cases) + "\n}\n"


def difference(wanted: Entries, got: Entries) -> str:
    """Return the first difference between two conversations apart from messages; empty for none."""
    return difference_in_words([_substance(entry) for entry in wanted], [_substance(entry) for entry in got])


def difference_in_words(wanted: Entries, got: Entries) -> str:
    """Return the first difference between two conversations, including messages; empty for none."""
    for number, (ours, theirs) in enumerate(zip(got, wanted, strict=False)):
        if ours != theirs:
            return f"request {number + 1}, {theirs['asked']}\n" + "\n".join(paths(theirs, ours))
    if len(got) != len(wanted):
        return f"{len(got)} requests instead of {len(wanted)}"
    return ""


def _substance(entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry without messages; of an error's message only the READ_WORDS in it are kept."""
    body = entry["body"]
    if entry["status"] < 400:
        return entry
    if not isinstance(body, dict):
        return {**entry, "body": "<text>"}
    details = dict(body.get("details") or {})
    if "causes" in details:
        details["causes"] = [
            {"reason": cause.get("reason", ""), "field": cause.get("field", "")}
            for cause in details["causes"]
        ]
    words = [words for words in READ_WORDS if words in (body.get("message") or "")]
    return {**entry, "body": {**body, "details": details, "message": words}}


def paths(wanted: Any, got: Any, path: str = "") -> list[str]:
    """Return a line for every field that differs."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        keys = sorted(wanted.keys() | got.keys())
        return [line for key in keys for line in paths(wanted.get(key), got.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        pairs = enumerate(zip(wanted, got, strict=True))
        return [line for index, (old, new) in pairs for line in paths(old, new, f"{path}[{index}]")]
    return [] if wanted == got else [f"  {path}: recorded {wanted!r}, answered {got!r}"]


def _path(release: str, subject: str) -> Path:
    return ANSWERS / release / f"{subject}.json"
