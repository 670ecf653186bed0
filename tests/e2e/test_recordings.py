"""The recordings that replays rest on are what the real cluster and Knative's adapters still do."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Stages
from tests.replays import record
from tests.replays.recorded import FOLDER
from tests.replays.recording.difference import difference
from tests.replays.recording.scripts import SCRIPTS
from tests.replays.recording.take import Take

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.mark.parametrize("story", ["5-does-not-fit"])
def test_recorded_again_the_same_happens(stages: Stages, story: str) -> None:
    """The same events lead to the same moments, in both modes; what differs is chance and nothing else.

    One short story of the five; `make record` looks at all.
    """
    # Functions that react by themselves would play along, so Muster's own stage has to go.
    stages.close()
    with record.stage() as cluster:
        again = record.record(cluster, SCRIPTS[story])
    assert difference(story, Take.read(FOLDER, story), again) == ""
