"""The page of `muster view` and `muster replay --html`: a file with the data in it, or that asks for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from muster.replay.timeline import Timeline

_PAGE = Path(__file__).with_name("page.html")
_DATA = "null/* what is shown */"


def live_page(title: str) -> str:
    """Return the page of a cluster, which asks its server for what is new."""
    return _with_data({"title": title, "live": True})


def recorded_page(timeline: Timeline, title: str) -> str:
    """Return the page of a recording, which needs neither server nor network."""
    return _with_data({"title": title, **timeline.since()})


def _with_data(data: dict[str, Any]) -> str:
    # In a script element `<` might begin its end.
    return _PAGE.read_text().replace(_DATA, json.dumps(data).replace("<", "\\u003c"))
