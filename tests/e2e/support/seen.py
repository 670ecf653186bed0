"""The record of a run of stories for tests/rights: one file in build/e2e for each process of pytest-xdist."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from tests.e2e.support.rights import Rights
from tests.e2e.support.whole_run import WholeRun

FOLDER = Path(__file__).parents[3] / "build" / "e2e"


@dataclass
class Seen:
    """The record of one process, or of all of them joined.

    Attributes:
        rights: permissions granted to Muster and used by it on the clusters.
        run: the stories that were collected, deselected or failed.
    """

    rights: Rights = field(default_factory=Rights)
    run: WholeRun = field(default_factory=WholeRun)

    def keep(self, process: str, folder: Path = FOLDER) -> None:
        """Write the record of a process to its file."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{process}.json").write_bytes(_AS_JSON.dump_json(self, indent=1))


_AS_JSON = TypeAdapter(Seen)


def forget(folder: Path = FOLDER) -> None:
    """Remove the files of an earlier run."""
    for file in folder.glob("*.json"):
        file.unlink()


def recall(folder: Path = FOLDER) -> Seen:
    """Return the joined records of all processes of the latest run."""
    joined = Seen()
    for file in sorted(folder.glob("*.json")):
        seen = _AS_JSON.validate_json(file.read_bytes())
        joined.rights.join(seen.rights)
        joined.run.join(seen.run)
    return joined
