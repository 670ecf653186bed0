"""Rewrite the golden plans and conditions.

python -m tests.replays.update
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

from muster.replay.replay import replay
from muster.replay.snapshots import Object
from muster.replay.summary import summarize
from tests.replays import recorded
from tests.replays.golden import CONDITIONS, cases, write

LATER = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)


def main() -> None:
    """Rewrite all golden files; review the diff."""
    all_cases = cases()
    for case in all_cases:
        case.plan_file.write_text(case.planned())
    write(CONDITIONS, {story: conditions(story) for story in recorded.STORIES})
    sys.stdout.write(f"{len(all_cases)} plans written; review them with git diff\n")


def conditions(story: str) -> dict[str, list[Object]]:
    """Return the owners' conditions after a replay of all events, by the moment it begins with."""
    owners_by_moment = {}
    for world in recorded.moments(story):
        end = replay(recorded.events(story), world.objects, LATER)
        owners_by_moment[world.checkpoint] = summarize(end.objects)["owners"]
    return owners_by_moment


if __name__ == "__main__":
    main()
