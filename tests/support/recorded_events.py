"""Events as Knative's real adapter sent them, one of each kind and type."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "recorded"


def recorded(mode: str) -> list[dict[str, Any]]:
    """The structured events of one mode, `resource` or `reference`; never none."""
    lines = (_FOLDER / f"one-of-each.{mode}.jsonl").read_text().splitlines()
    assert lines, f"no recorded events of mode {mode}"
    return [json.loads(line) for line in lines]


def title(event: dict[str, Any]) -> str:
    """`PodGroup add`: what an event is about, for the id of a case."""
    return f"{event['kind']} {event['type'].rpartition('.')[2]}"
