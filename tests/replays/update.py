"""Rewrite the golden plans and conditions.

python -m tests.replays.update
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime

from muster.replay.replay import replay
from muster.replay.snapshots import Object
from muster.replay.summary import muster_conditions
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


def conditions(story: str) -> dict[str, dict[str, list[str]]]:
    """Return the owners' conditions after a replay of all events, by the moment it begins with."""
    by_moment = {}
    for world in recorded.moments(story):
        end = replay(recorded.events(story), world.objects, LATER)
        by_moment[world.name] = conditions_of(end.objects)
    return by_moment


def conditions_of(objects: Iterable[Object]) -> dict[str, list[str]]:
    """Return Muster's conditions of owners, without their times."""
    told = {
        f"{body['kind']} {body['metadata'].get('namespace')}/{body['metadata']['name']}": [
            "{type} {status} {reason}: {message}".format(**condition) for condition in muster_conditions(body)
        ]
        for body in objects
    }
    return {owner: conditions for owner, conditions in sorted(told.items()) if conditions}


if __name__ == "__main__":
    main()
