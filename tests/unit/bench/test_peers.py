"""The peers do the same job as the functions, and the smallest sets of calls are about real stories."""

from __future__ import annotations

from bench.api_calls import SMALLEST
from bench.peers.manifest import workload
from muster.local.stories import STORIES
from muster.objects import yaml_files
from tests.docs.commands import ROOT

CASE = "an-Indexed-Job-gets-a-Workload-named-as-the-Job-controller-names-it"


def test_peers_create_the_workload_that_create_workload_creates() -> None:
    """Of an owner without a policy."""
    plan = yaml_files.load((ROOT / "tests/replays/create_workload" / CASE / "plan.yaml").read_text())
    (action,) = plan["actions"]
    name, owner = (
        action["body"]["spec"]["controllerRef"]["name"],
        action["body"]["metadata"]["ownerReferences"],
    )
    made = workload(name, action["namespace"], owner[0]["uid"], "main", 4)
    assert (made["spec"], made["metadata"]["ownerReferences"]) == (action["body"]["spec"], owner)


def test_the_smallest_sets_are_of_stories_and_have_reasons() -> None:
    """A count without a reason could be any number."""
    assert set(SMALLEST) <= {story.name for story in STORIES}
    for rows in (rows for story in SMALLEST.values() for rows in story.values()):
        assert all(count > 0 and why for count, why in rows.values())
