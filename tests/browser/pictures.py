"""Pictures of the page in docs/pictures, of a moment of each story: `python -m tests.browser.pictures`."""

from __future__ import annotations

from pathlib import Path

from muster.local.stories.story import STORIES
from tests.support.chromium import Browser, chromium
from tests.support.processes import running

FOLDER = Path(__file__).parents[2] / "docs/pictures"
MOMENTS = {
    "torch": "known.entries.findLastIndex(one => (one.run || {}).step === 'emit_conditions')",
    "torchtune": "known.entries.findIndex(one => JSON.stringify(one.diff || '').includes('WaitingForPods'))",
    "mpi": "known.entries.findIndex(one => one.by === 'muster-create-workload')",
    "indexed-job": "known.entries.findIndex(one => one.by === 'muster-patch-pods')",
    "does-not-fit": "known.entries.findIndex(one => one.by === 'muster-emit-conditions')",
}
"""The entry of each story that its page shows in the picture."""


def write(browser: Browser, story: str) -> None:
    """Write the picture of a story, one of them in the dark."""
    with running("view", "--story", story) as process:
        browser.open(process.line("in a browser").split()[1], dark=story == "mpi")
        browser.until("(known.rows.get(view.gang) || {}).reason === 'Scheduled'")
        browser.until("known.entries.some(one => one.by === 'kwok')")
        browser.run(f"(toStart(), moveTo(1 + {MOMENTS[story]}))")
        browser.picture(FOLDER / f"view-{story}.png")


if __name__ == "__main__":
    with chromium() as started:
        for each in STORIES.values():
            write(started, each.name)
