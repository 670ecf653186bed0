"""Events that no function takes: kept as ConfigMaps, the oldest make room, and they can be sent again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from muster.cli import main
from muster.events.dead_letters import SELECTOR
from tests.cluster.processes import until
from tests.e2e.conftest import RealStage
from tests.e2e.support.dead_letters import with_wrong_type
from tests.e2e.support.muster import NAMESPACE, Muster
from tests.e2e.support.owners import a_job, a_runtime, template_labels
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

POLICY_OF_WORKERS = "workload: {groups: [{name: workers, replicatedJobs: [node]}]}"


@pytest.fixture(name="letters")
def _letters(stage: RealStage) -> Iterator[Letters]:
    """The dead letters of this story; they are its point, so they do not count against it."""
    letters = Letters(stage)
    yield letters
    stage.muster.idle()
    stage.muster.dead_letters.clear()


class Letters:
    """What is kept since the story began."""

    def __init__(self, stage: RealStage) -> None:
        self._api = stage.cluster.api
        self._before = self._kept()

    def names(self) -> set[str]:
        """Return the names of their ConfigMaps."""
        return self._kept() - self._before

    def _kept(self) -> set[str]:
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        config_maps = self._api.must("GET", path, query={"labelSelector": SELECTOR})["items"]
        return {obj["metadata"]["name"] for obj in config_maps}


def test_an_event_that_no_function_took_is_kept_and_does_its_work_when_sent_again(
    story: RealStory, stage: RealStage, letters: Letters
) -> None:
    """A runtime created while mark-runtime was away for long is labelled after `muster redrive`."""
    stage.muster.stop_function("mark-runtime")
    try:
        runtime = story.create(a_runtime(story.api, "late", POLICY_OF_WORKERS))
        assert until(lambda: letters.names() != set(), 60), "no dead letter of the runtime was kept"
    finally:
        stage.muster.start_function("mark-runtime")
    assert stage.muster.idle()
    names = letters.names()

    options = ["--kubeconfig", str(stage.cluster.kubeconfig), *stage.muster.redrive_options]
    redriven = CliRunner().invoke(main, ["redrive", *names, *options])
    assert redriven.exit_code == 0, redriven.output
    assert all(name in redriven.output for name in names)
    story.wait_for(
        runtime, "it is labelled", lambda now: template_labels(now) == {"muster.dev/group": "workers"}
    )
    assert not letters.names() & names


def test_a_field_of_a_wrong_type_is_refused_by_every_function_at_once(
    story: RealStory, muster_on_it: Muster, letters: Letters
) -> None:
    """Functions answer 400 with the field's path; after a 500 the broker would send the event again."""
    job = story.create(a_job("sweep", pods=2))
    assert muster_on_it.idle()
    muster_on_it.dead_letters.clear()
    muster_on_it.publish(with_wrong_type(job))
    assert muster_on_it.idle()
    refusals = {line.split(" answered ")[0].split(": ")[-1]: line for line in muster_on_it.dead_letters}
    assert set(refusals) == {"resize-gang"}
    for line in refusals.values():
        assert " answered 400 " in line
        assert "data.spec.parallelism" in line
    assert len(letters.names()) == 1
