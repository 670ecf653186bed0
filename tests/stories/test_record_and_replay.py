"""`muster replay` of what `muster record` wrote makes the same groups.

The story is the first of tests/replays/recordings, a torch TrainJob of three nodes, on the embedded cluster.
"""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from muster.cli import main
from muster.local.stories.story import STORIES
from muster.replay.snapshots import RecordedObjects, read_snapshots
from tests.stories.stage import without
from tests.support.processes import running


@dataclass(frozen=True)
class Recorded:
    """The recording of a story.

    Attributes:
        events: the file.
        objects: likewise.
        end: the cluster at its end.
    """

    events: Path
    objects: Path
    end: RecordedObjects


@pytest.fixture(name="story", scope="module")
def _story(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The torch story up to its gated pods, recorded by `muster record` and stopped by SIGINT."""
    folder = tmp_path_factory.mktemp("record")
    events, objects, kubeconfig = folder / "e.jsonl.gz", folder / "o.yaml.gz", folder / "kubeconfig"
    with without("patch-pods", folder) as stage:
        assert stage.stack.server is not None
        kubeconfig.write_text(stage.stack.server.kubeconfig())
        options = ["--kubeconfig", str(kubeconfig), "--objects", str(objects)]
        with running("record", str(events), *options) as recorder:
            assert "PodGroup" in recorder.line("TrainJob")
            for obj in STORIES["torch"].manifest:
                stage.create(obj)
            stage.until("a pod is gated", lambda: stage.gated() == 1)
            stage.until("the PodGroup is there", lambda: stage.all("PodGroup"))
            stage.settle()
            time.sleep(0.5)  # for the recorder, which hears of the PodGroup by a watch of its own
            assert recorder.end() == 0
            recorder.line(f"{events}: ")
            recorder.line(f"{objects}: ")
    worlds = read_snapshots([objects])
    assert (worlds[0].name, worlds[-1].name) == ("start", "end")
    return Recorded(events, objects, worlds[-1])


def lines(path: Path) -> list[dict[str, object]]:
    """Return the events of a gzipped file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_the_story_is_recorded_as_knatives_source_sends_it(story: Recorded) -> None:
    """Every object of a source once; the files are complete, without secrets, and their owner's alone."""
    assert {path.stat().st_mode & 0o777 for path in (story.events, story.objects)} == {0o600}
    added = [line["kind"] for line in lines(story.events) if str(line["type"]).endswith(".resource.add")]
    assert " ".join(sorted(map(str, added))) == "Job JobSet Pod PodGroup TrainJob"
    text = gzip.decompress(story.events.read_bytes()) + gzip.decompress(story.objects.read_bytes())
    assert b"managedFields" not in text
    # The Trainer's environment, whose values are not read again.
    assert b"JOB_COMPLETION_INDEX" in text
    assert b"<left out>" in text


def test_a_recorded_story_is_replayed_by_the_embedded_server(story: Recorded) -> None:
    """`muster replay FILE --objects FILE` creates the recorded groups again, and lifts the gates."""
    result = CliRunner().invoke(
        main,
        [
            *("replay", str(story.events), "--objects", str(story.objects)),
            *("--moment", "end", "--drop-groups"),
        ],
    )
    assert result.exit_code == 0, result.output
    (group,) = (obj for obj in story.end.objects if obj["kind"] == "PodGroup")
    (gang,) = yaml.safe_load(result.stdout.partition("\n\n")[2])["gangs"]
    (made,) = gang["podGroups"]
    assert (made["name"], made["policy"]) == (group["metadata"]["name"], "gang")
    assert (made["needed"], made["members"], made["gated"], made["bound"]) == (3, 3, 0, 0)
