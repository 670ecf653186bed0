"""`muster replay` of what `muster record` wrote makes the same groups, in any order and with duplicates.

The story is the first of tests/replays/recordings, a torch TrainJob of three nodes, on the embedded cluster.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from muster.cli import main
from muster.local.stack import running_functions
from muster.local.stories.story import story_named
from muster.replay.replay import without_groups
from muster.replay.snapshots import Objects, RecordedObjects, read_snapshots
from muster.replay.summary import is_gated
from muster.runtime.config import Settings
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.replays.test_streams import groups_of
from tests.stories.stage import without
from tests.support.processes import running

SERVICES = ("create-workload", "create-pod-groups", "patch-pods")
"""The functions that the story needs; patch-pods did not run, so the recorded pods stay gated."""


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
        # A signal that comes while a moment is read would leave out the last one.
        options += ["--every", "10m"]
        with running("record", str(events), *options) as recorder:
            assert "PodGroup" in recorder.line("TrainJob")
            for obj in story_named("torch").manifest:
                stage.create(obj)
            stage.until("all pods are gated", lambda: stage.gated() == 3)
            stage.until("the PodGroup is there", lambda: stage.all("PodGroup"))
            stage.settle()
            assert recorder.end() == 0
            recorder.line(f"{events}: ")
            recorder.line(f"{objects}: ")
    worlds = read_snapshots([objects])
    assert (worlds[0].checkpoint, worlds[-1].checkpoint) == ("start", "end")
    return Recorded(events, objects, worlds[-1])


def lines(path: Path) -> list[dict[str, object]]:
    """Return the events of a gzipped file."""
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_the_story_is_recorded_as_knatives_source_sends_it(story: Recorded) -> None:
    """Every object is added once; the files are complete, without secrets, and their owner's alone."""
    assert {path.stat().st_mode & 0o777 for path in (story.events, story.objects)} == {0o600}
    added = [line["kind"] for line in lines(story.events) if str(line["type"]).endswith(".resource.add")]
    assert " ".join(sorted(map(str, added))) == "Job JobSet Pod Pod Pod PodGroup TrainJob Workload"
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
    name = f"PodGroup team-a/{group['metadata']['name']}"
    (line,) = (line for line in result.stdout.splitlines() if line.startswith(name))
    assert "minCount 3" in line
    assert re.findall(r"\b\d+\b", line.rpartition(";")[2]) == ["0", "3", "0"]


@pytest.mark.parametrize(
    "arranged",
    [
        pytest.param(["--shuffle", "1", "--duplicates", "1"], id="shuffled and doubled"),
        pytest.param([], id="as they came"),
    ],
)
def test_functions_that_run_make_the_recorded_end_of_it(story: Recorded, arranged: list[str]) -> None:
    """Each function, served as in a container, gets all events over HTTP and creates the recorded groups."""
    with served(without_groups(story.end.objects)) as (server, urls):
        for url in urls:
            result = CliRunner().invoke(main, ["replay", str(story.events), "--to", url, *arranged])
            assert result.exit_code == 0, result.output
        end = server.snapshot()
    assert groups_of(end) == groups_of(story.end.objects) != []
    assert [pod for pod in end if pod["kind"] == "Pod" and is_gated(pod)] == []
    assert [pod for pod in story.end.objects if pod["kind"] == "Pod" and is_gated(pod)] != []


@contextmanager
def served(objects: Objects) -> Iterator[tuple[ApiServer, Sequence[str]]]:
    """Run an embedded API server with these objects, and the functions."""
    with ApiServer() as server:
        server.load(resource_definitions())
        server.load(objects)
        with running_functions(SERVICES, Settings(api_server=server.url), lambda _activity: None) as urls:
            yield server, list(urls.values())
