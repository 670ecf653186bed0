"""Write the event and the objects of a golden case into a folder, as input files for `muster plan`.

python -m tests.replays.inputs tests/replays/create_workload/a-TrainJob-gets-a-Workload build
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from muster.testing.cases import envelope
from tests.replays.golden import GoldenCase, write


def main(arguments: list[str]) -> int:
    """Write event.json and cluster.yaml; return the exit code."""
    if len(arguments) != 2 or not (Path(arguments[0]) / "plan.yaml").exists():
        sys.stderr.write("name the folder of a case, tests/replays/FUNCTION/CASE, and one to write to\n")
        return 2
    case, folder = map(Path, arguments)
    write_inputs(GoldenCase(case), folder)
    return 0


def write_inputs(case: GoldenCase, folder: Path) -> None:
    """Write event.json and cluster.yaml of a case."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "event.json").write_text(json.dumps(envelope(case.case.event), indent=2) + "\n")
    write(folder / "cluster.yaml", {"apiVersion": "v1", "kind": "List", "items": case.case.objects})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
