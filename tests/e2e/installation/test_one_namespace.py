"""The overlay one-namespace: functions, sources and rights live in one namespace, and end there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from muster.events.dead_letters import SELECTOR
from tests.cluster import audit
from tests.cluster.cluster import ClusterOptions, RealCluster, running
from tests.cluster.processes import until
from tests.e2e.conftest import Stages
from tests.e2e.support import admission, muster
from tests.e2e.support.dead_letters import nonsense
from tests.e2e.support.muster import Muster
from tests.e2e.support.owners import a_job, a_trainjob
from tests.e2e.support.story import RealStory

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
OPTIONS = ClusterOptions()
OVERLAY = "one-namespace"
TEAM = "team-a"
ACCOUNTS = f"system:serviceaccount:{TEAM}:"


@dataclass(frozen=True)
class House:
    """A cluster on which one team has Muster, and what happens in the team's namespace."""

    cluster: RealCluster
    muster: Muster
    team: RealStory


@pytest.fixture(name="house", scope="module")
def _house(stages: Stages, request: pytest.FixtureRequest) -> Iterator[House]:
    # No stage: there Muster is installed before the story's namespace is made, which here is Muster's home.
    stages.close()
    with running(request.module.OPTIONS) as cluster:
        team = RealStory(cluster, TEAM)
        with muster.installed(cluster, OVERLAY) as installation:
            assert admission.policies_at_work(cluster.api, TEAM)
            team.add_nodes(3)
            yield House(cluster, installation, team)


@pytest.fixture(autouse=True)
def _laws(house: House) -> Iterator[None]:
    """The laws of every story, and those of this overlay."""
    yield
    assert house.muster.idle()
    assert house.team.breaches() == []
    events = audit.events_since(house.cluster.audit_log)
    asked = [event for event in events if event["user"]["username"].startswith(ACCOUNTS)]
    decision = "authorization.k8s.io/decision"
    assert [event["requestURI"] for event in asked if event["annotations"][decision] != "allow"] == []
    assert {event.get("objectRef", {}).get("namespace", "") for event in asked} - {""} == {TEAM}


def test_a_role_is_all_that_a_trainjob_needs(house: House) -> None:
    """From the first event to the last: grouped, placed together, reported, and removed without a trace."""
    team = house.team
    trainjob = team.create(a_trainjob("llama", "torch-distributed", nodes=3, cpu=6))
    team.wait("three pods run", lambda now: now.running() == 3)
    assert team.policy("trainer") == {"gang": {"minCount": 3}}
    team.wait(
        "conditions say so", lambda now: now.condition("TrainJob", "llama", "PodGroupsScheduled") == "True"
    )
    team.delete(trainjob)
    team.wait("nothing is left", lambda now: not now.leftovers())
    assert house.muster.dead_letters == []


def test_every_function_has_all_its_permissions(house: House) -> None:
    """They ask for their rights in the one namespace."""
    answers = {name: house.muster.readiness(name) for name in house.muster.functions}
    assert set(answers.values()) == {(200, "OK\n")}, answers
    assert "mark-runtime" not in answers


def test_sweeps_repair_missed_events(house: House) -> None:
    """They list the one namespace; a list of all of them would be refused."""
    team, installation = house.team, house.muster
    installation.stop_adapters()
    try:
        job = team.create(a_job("sweep", pods=2))
        team.wait("two pods are made", lambda now: len(now.pods()) == 2)

        def runs() -> bool:
            installation.sweep()
            return installation.idle() and team.running() == 2

        assert until(runs, 60)
    finally:
        installation.start_adapters()
    assert team.policy("main") == {"gang": {"minCount": 2}}
    team.delete(job)
    team.wait("nothing is left", lambda now: not now.leftovers())
    assert installation.dead_letters == []


def test_another_namespace_is_left_alone(house: House) -> None:
    """Neither namespace label nor group label has an effect there: pods run at once, each by itself."""
    other = RealStory(house.cluster, "team-b")
    try:
        other.create(a_job("unmarked", pods=2))
        other.create(a_job("marked", pods=2, labels={"muster.dev/group": "workers"}))
        other.wait("four pods run", lambda now: now.running() == 4)
        house.muster.sweep()
        assert house.muster.idle()
        assert not any(other.group_name(pod) or other.gates(pod) for pod in other.pods())
        assert other.groups() == {}
        assert other.recording.now("Workload") == {}
        assert other.writes() == []
    finally:
        other.end()


def test_dead_letters_are_kept_in_the_namespace(house: House) -> None:
    """As ConfigMaps, by an account that may keep them nowhere else."""
    house.muster.publish(nonsense(1, kind="Job", apiversion="batch/v1"))
    assert house.muster.idle()
    path = f"/api/v1/namespaces/{TEAM}/configmaps"
    kept = house.cluster.api.must("GET", path, query={"labelSelector": SELECTOR})["items"]
    assert len(kept) == len(house.muster.dead_letters) > 0
