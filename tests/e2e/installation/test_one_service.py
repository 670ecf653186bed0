"""The overlay one-service with Knative's own broker: stories of other modules, all functions in one Service.

The laws of every story hold here too. The account is shared, so the step that wrote is known by its client's
name.
"""

from __future__ import annotations

import re

import pytest

from muster.events.dead_letters import SELECTOR
from tests.cluster.cluster import ClusterOptions
from tests.cluster.processes import until
from tests.e2e.conftest import RealStage
from tests.e2e.installation import test_readiness
from tests.e2e.owners import test_jobs, test_trainjobs
from tests.e2e.policies import test_runtimes
from tests.e2e.support.dead_letters import nonsense
from tests.e2e.support.muster import NAMESPACE
from tests.e2e.support.owners import a_job
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions(knative=True)
OVERLAY = "one-service"
SERVICE = "muster"
LETTERS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"

test_an_indexed_job_runs_as_one_gang = test_jobs.test_an_indexed_job_runs_as_one_gang
test_every_function_has_all_its_permissions = test_readiness.test_every_function_has_all_its_permissions
test_a_policy_on_a_runtime_shapes_the_groups_of_its_trainjobs = (
    test_runtimes.test_a_policy_on_a_runtime_shapes_the_groups_of_its_trainjobs
)
test_a_torch_trainjob_runs_as_one_gang = test_trainjobs.test_a_torch_trainjob_runs_as_one_gang


def test_one_process_does_the_work_of_every_step(story: RealStory, stage: RealStage) -> None:
    """Its log and the audit log have every step by its name, and all writes are of the one account."""
    story.add_nodes(2)
    job = story.create(a_job("sweep", pods=3))
    story.wait("three pods run", lambda now: now.running() == 3)
    story.patch(job, {"spec": {"parallelism": 2, "completions": 2}})
    story.wait("two pods are left", lambda now: len(now.pods()) == 2)
    assert stage.muster.idle()
    assert list(stage.muster.functions) == [SERVICE]
    steps = set(re.findall(r'"step": "(\w+)"', stage.muster.log(SERVICE)))
    assert {"create_workload", "create_pod_groups", "patch_pods", "resize_gang", "emit_conditions"} <= steps
    writers = {write.writer for write in story.writes()}
    assert writers == {"create-workload", "create-pod-groups", "patch-pods", "resize-gang", "emit-conditions"}


def test_dead_letters_are_kept_with_the_path_of_their_function(stage: RealStage) -> None:
    """The trigger's path leads to the function, and the sink's path to the store in the same process."""
    letters = stage.muster.dead_letters
    before, stored = len(letters), stored_letters(stage)
    stage.muster.publish(nonsense(1))
    assert until(lambda: len(letters) > before, 60)
    assert stage.muster.idle()
    assert [line for line in letters[before:] if f"{SERVICE}/mark-runtime answered 400" not in line] == []
    kept = stored_letters(stage)
    new = kept.keys() - stored.keys()
    assert [kept[name] for name in new] == [f"{SERVICE}/mark-runtime"]
    del letters[before:]
    for name in new:
        stage.cluster.api.must("DELETE", f"{LETTERS}/{name}")


def stored_letters(stage: RealStage) -> dict[str, str]:
    """The functions of the dead letters that are stored, by name: the restart above may leave some."""
    items = stage.cluster.api.must("GET", LETTERS, query={"labelSelector": SELECTOR})["items"]
    return {obj["metadata"]["name"]: obj["data"]["function"] for obj in items}
