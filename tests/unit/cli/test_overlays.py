"""--overlay of `muster run` and `muster replay`: an overlay that cannot be run is reported in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from muster.cli import main
from muster.data import EVENTING, RECORDINGS
from muster.simulator.overlays import built

KUSTOMIZATION = "kustomization.yaml"
EMPTY = "kind: Kustomization\n"
STEP = "function/step.py"
TRIGGER = (EVENTING / "examples/label_racks/trigger.yaml").read_text()
GOOD = (EVENTING / "examples/label_racks" / STEP).read_text()


@pytest.mark.parametrize(
    "files",
    [
        {KUSTOMIZATION: "resources: [there.yaml]"},
        {KUSTOMIZATION: "resources: ["},
        {KUSTOMIZATION: "resources: [trigger.yaml]", "trigger.yaml": TRIGGER},
        {KUSTOMIZATION: "resources: [a.yaml]", "a.yaml": "{kind: ConfigMap, metadata: {name: a}}"},
        {KUSTOMIZATION: EMPTY, STEP: "import os\nnowhere"},
        {KUSTOMIZATION: EMPTY, STEP: GOOD},
    ],
)
def test_an_overlay_that_cannot_be_run_is_reported(files: dict[str, str], tmp_path: Path) -> None:
    """In one line; the exit status is 2."""
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    result = CliRunner().invoke(main, ["run", "--overlay", str(tmp_path)])
    assert (result.exit_code, len(result.output.splitlines())) == (2, 1)


@pytest.mark.parametrize("overlay", ["kubernetes-1.36", "one-service"])
def test_a_replay_with_any_overlay_makes_the_groups(overlay: str) -> None:
    """Of the release that it is for, with functions of their own or as paths of one Service."""
    events, objects = RECORDINGS / "1-torch.resource.jsonl.gz", RECORDINGS / "1-torch.objects.yaml.gz"
    options = {"--objects": objects, "--overlay": built(overlay), "--output": "yaml"}
    arguments = [str(word) for option in options.items() for word in option]
    result = CliRunner().invoke(main, ["replay", str(events), "--drop-groups", *arguments])
    assert result.exit_code == 0, result.output
    (gang,) = yaml.safe_load(result.output)["gangs"]
    assert (gang["workload"], gang["podGroups"][0]["reason"]) == ("llama", "WaitingForScheduler")
