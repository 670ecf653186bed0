"""What the real servers answered to the contract cases, as recorded; `answers/<release>/<subject>.json`.

The files hold every word. Two answers are the same answer when status, reason, details, the reason and field
of each cause and the objects are equal: a sentence is not compared, except for the words in READ_WORDS.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

from tests.contract import cases
from tests.contract.case import Case

ANSWERS = Path(__file__).parent / "answers"
RELEASES = ("1.37", "1.36")

Entries = list[dict[str, Any]]

READ_WORDS = (
    # muster/cluster/execute.py: an Invalid about `metadata.uid` means that a pod of another UID has the name.
    "metadata.uid",
    # muster/operator/check/preflight.py: a list fails with these words if an older release stored objects.
    "is registered for version",
)
"""Every part of an API server's message that Muster's code reads; elsewhere messages are only passed on."""


def all_cases(release: str) -> list[Case]:
    """Returns the cases of every subject that hold in a release.

    Raises:
        AssertionError: there are none, or two have the same key: a contract of no cases proves nothing.
    """
    found: list[Case] = []
    for module in pkgutil.iter_modules(cases.__path__, f"{cases.__name__}."):
        found += importlib.import_module(module.name).CASES
    keys = [(case.subject, case.key) for case in found]
    assert len(keys) == len(set(keys)), "two cases of one subject have the same name"
    chosen = [case for case in found if release in case.releases]
    assert chosen, f"no contract case holds in {release}"
    return chosen


def read(release: str, case: Case) -> Entries | None:
    """Returns what the real server answered to a case; None when that was never recorded."""
    path = _path(release, case.subject)
    if not path.exists():
        return None
    recorded: dict[str, Entries] = json.loads(path.read_text())
    return recorded.get(case.key)


def write(release: str, recorded: dict[str, dict[str, Entries]]) -> None:
    """Writes the answers of a release by subject and case; files of subjects that are gone go as well."""
    folder = ANSWERS / release
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        if old.stem not in recorded:
            old.unlink()
    for subject, answers in recorded.items():
        _path(release, subject).write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


def difference(wanted: Entries, got: Entries) -> str:
    """Returns the first difference of substance between two conversations; empty for none."""
    return difference_in_words([_substance(entry) for entry in wanted], [_substance(entry) for entry in got])


def difference_in_words(wanted: Entries, got: Entries) -> str:
    """Returns the first difference between two conversations, sentences included; empty for none."""
    for number, (ours, theirs) in enumerate(zip(got, wanted, strict=False)):
        if ours != theirs:
            return f"request {number + 1}, {theirs['asked']}\n" + "\n".join(_paths(theirs, ours))
    if len(got) != len(wanted):
        return f"{len(got)} requests instead of {len(wanted)}"
    return ""


def _substance(entry: dict[str, Any]) -> dict[str, Any]:
    """Returns an entry whose refusal has no sentences, only what READ_WORDS names of its message."""
    body = entry["body"]
    if entry["status"] < 400:
        return entry
    if not isinstance(body, dict):
        return {**entry, "body": "<text>"}
    details = dict(body.get("details") or {})
    if "causes" in details:
        details["causes"] = [{"reason": one["reason"], "field": one["field"]} for one in details["causes"]]
    words = [words for words in READ_WORDS if words in (body.get("message") or "")]
    return {**entry, "body": {**body, "details": details, "message": words}}


def _paths(wanted: Any, got: Any, path: str = "") -> list[str]:
    """Returns a line for every field that differs."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        keys = sorted(wanted.keys() | got.keys())
        return [line for key in keys for line in _paths(wanted.get(key), got.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        pairs = enumerate(zip(wanted, got, strict=True))
        return [line for index, (one, other) in pairs for line in _paths(one, other, f"{path}[{index}]")]
    return [] if wanted == got else [f"  {path}: recorded {wanted!r}, answered {got!r}"]


def _path(release: str, subject: str) -> Path:
    return ANSWERS / release / f"{subject}.json"
