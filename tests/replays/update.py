"""Write the golden plans anew; `--inputs` first takes events and clusters from the recordings again.

python -m tests.replays.update [--inputs]
"""

from __future__ import annotations

import json
import shutil
import sys
from datetime import datetime

from muster.replay import summary as outline
from muster.replay.replay import Order, replay
from muster.replay.snapshots import Object
from tests.replays import recorded
from tests.replays.cases import CHOSEN, SWEEP, Chosen
from tests.replays.golden import CONDITIONS, ROOT, cases, write

SWEPT_AT = "2026-11-21T08:30:00Z"
LATER = datetime.fromisoformat(SWEPT_AT)


def main(arguments: list[str]) -> None:
    """Write everything; the diff is for the reviewer."""
    if "--inputs" in arguments:
        for function, chosen in CHOSEN.items():
            for one in chosen:
                write_inputs(function, one)
    found = cases()
    for case in found:
        case.plan_file.write_text(case.planned())
    write(CONDITIONS, {story: conditions(story) for story in recorded.STORIES})
    sys.stdout.write(f"{len(found)} plans written; review them with git diff\n")


def write_inputs(function: str, chosen: Chosen) -> None:
    """The event and the cluster of one case."""
    folder = ROOT / function / chosen.says.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    event = sweep() if chosen.what == SWEEP else recorded_event(chosen)
    (folder / "event.json").write_text(json.dumps(event, indent=2) + "\n")
    objects = recorded.slim(recorded.world_at(chosen.story, chosen.moment).objects)
    write(folder / "cluster.yaml", {"apiVersion": "v1", "kind": "List", "items": objects})


def recorded_event(chosen: Chosen) -> Object:
    """The chosen event, without what no step reads."""
    event: Object = recorded.slim(recorded.event(chosen.story, chosen.what, chosen.number, chosen.mode))
    return event


def conditions(story: str) -> dict[str, list[Object]]:
    """What the owners say after the stream, at every moment."""
    told = {}
    for world in recorded.moments(story):
        end = replay(Order(recorded.events(story)), [world], LATER)
        told[world.moment] = outline.outline(end.objects)["owners"]
    return told


def sweep() -> Object:
    """The event of a sweep sent by hand."""
    return {
        "specversion": "1.0",
        "id": "sweep-1",
        "source": "/muster/replays",
        "type": "dev.muster.sweep",
        "time": SWEPT_AT,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
