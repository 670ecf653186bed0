"""Recorded events of Knative's real adapter, one of each kind and type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "recorded"


def recorded(mode: str) -> list[dict[str, Any]]:
    """Return the structured events of a mode, `resource` or `reference`; at least one."""
    lines = (_FOLDER / f"one-of-each.{mode}.jsonl").read_text().splitlines()
    assert lines, f"no recorded events of mode {mode}"
    return [json.loads(line) for line in lines]


def title(event: dict[str, Any]) -> str:
    """Return kind and change of an event, `PodGroup add`, as the id of a test case."""
    return f"{event['kind']} {event['type'].rpartition('.')[2]}"
