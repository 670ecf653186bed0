"""Write the golden plans and conditions anew.

python -m tests.replays.update
"""

from __future__ import annotations

import sys
from datetime import datetime

from muster.replay.replay import ReplayInput, replay
from muster.replay.snapshots import Object
from muster.replay.summary import summarize
from tests.replays import recorded
from tests.replays.excerpts import SWEPT_AT
from tests.replays.golden import CONDITIONS, cases, write

LATER = datetime.fromisoformat(SWEPT_AT)


def main() -> None:
    """Write everything; the diff is for the reviewer."""
    found = cases()
    for case in found:
        case.plan_file.write_text(case.planned())
    write(CONDITIONS, {story: conditions(story) for story in recorded.STORIES})
    sys.stdout.write(f"{len(found)} plans written; review them with git diff\n")


def conditions(story: str) -> dict[str, list[Object]]:
    """What the owners say after the stream, at every moment."""
    told = {}
    for world in recorded.moments(story):
        end = replay(ReplayInput(recorded.events(story)), [world], LATER)
        told[world.checkpoint] = summarize(end.objects)["owners"]
    return told


if __name__ == "__main__":
    main()
