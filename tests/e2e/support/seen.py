"""What a run of stories has seen, kept in files, for whoever looks back at all of it.

Stories are told by several processes at once; each keeps what it saw in a file of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter

from tests.e2e.support.rights import Rights
from tests.e2e.support.whole_run import WholeRun

FOLDER = Path(__file__).parents[3] / "build" / "e2e"


@dataclass
class Seen:
    """What one process saw, or all of them together.

    Attributes:
        rights: what Muster was granted and did on the clusters.
        run: what keeps the run from being a whole one.
    """

    rights: Rights = field(default_factory=Rights)
    run: WholeRun = field(default_factory=WholeRun)

    def keep(self, process: str, folder: Path = FOLDER) -> None:
        """Writes it to a file, one for each process."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{process}.json").write_bytes(_AS_JSON.dump_json(self, indent=1))


_AS_JSON = TypeAdapter(Seen)


def forget(folder: Path = FOLDER) -> None:
    """Removes what an earlier run kept."""
    for file in folder.glob("*.json"):
        file.unlink()


def recall(folder: Path = FOLDER) -> Seen:
    """Returns what all processes of the latest run saw."""
    together = Seen()
    for file in sorted(folder.glob("*.json")):
        seen = _AS_JSON.validate_json(file.read_bytes())
        together.rights.join(seen.rights)
        together.run.join(seen.run)
    return together
