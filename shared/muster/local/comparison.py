"""What `muster run` shows: two Jobs that fit one after the other, on plain Kubernetes and with Muster."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from muster.cluster.http.client import Client
from muster.local.stack import embedded_server
from muster.local.stories.story import USER, opted_in
from muster.local.stories.watching import TimelineRecorder
from muster.objects import yaml_files
from muster.objects.resources import JOBS, NAMESPACES, NODES, PODS
from muster.policy.status.conditions import SCHEDULED
from muster.replay.snapshots import Object
from muster.replay.summary import muster_conditions
from muster.simulator.controllers import node

TEAMS = ("team-blue", "team-red")
COUNT, GPUS = 9, 6
"""Nodes, and the GPUs of each."""
TIMEOUT_SECONDS = 30.0
_SETTLE_SECONDS = 5.0
_JOB = Path(__file__).parent / "stories" / "training.yaml"


class NotShownError(Exception):
    """What was to be shown did not happen in time."""


@dataclass
class TwoJobs:
    """Two teams create the same Job in a cluster; tells what is seen as it happens."""

    client: Client
    recorder: TimelineRecorder
    tell: Callable[[str], None]
    job: Object = field(default_factory=lambda: yaml_files.load(_JOB.read_text()))

    @property
    def size(self) -> int:
        """The pods of one Job; each has a GPU."""
        return int(self.job["spec"]["completions"])

    def create(self) -> None:
        """Create the Jobs in a cluster without nodes, so that the pods of both wait in turn."""
        for existing in self.client.list_with_version(NODES)[0]:
            self.client.delete(NODES, existing["metadata"]["name"])
        for team in TEAMS:
            self.client.create(NAMESPACES, opted_in(team), manager=USER)
        self.tell(f"{' and '.join(TEAMS)} each create a Job of {self.size} pods, one GPU each")
        self._create_jobs()

    def join(self) -> None:
        """Have the nodes join."""
        self.tell(f"{COUNT} nodes of {GPUS} GPUs join: room for one Job, not for two")
        for number in range(1, COUNT + 1):
            self.add_node(number)

    def add_node(self, number: int) -> None:
        """Have a node join."""
        self.client.create(NODES, node(f"node-{number}", gpu=GPUS), manager=USER)

    def bound(self, team: str) -> int:
        """Return how many pods of the team's Job have a node."""
        return sum(bool(pod["spec"].get("nodeName")) for pod in self._pods(team))

    def refusal(self, team: str) -> str:
        """Return what the Job's condition says of a gang that is not placed: how many pods would fit."""
        jobs = (body for body in self.recorder.objects(team) if body["kind"] == "Job")
        conditions = (one for job in jobs for one in muster_conditions(job))
        refused = [one for one in conditions if one["type"] == SCHEDULED and one["status"] == "False"]
        if not refused:
            return ""
        said = str(refused[0]["message"]).split("; ")
        return "; ".join(part for part in said if " would fit" in part or " lacks " in part) or "; ".join(
            said
        )

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true.

        Raises:
            NotShownError: it is not in time.
        """
        if not self.recorder.until(condition, TIMEOUT_SECONDS):
            raise NotShownError

    def tell_of(self, team: str, outcome: str) -> None:
        """Tell how many pods of the team's Job have a node."""
        self.tell(f"{team:<9} {self.bound(team):2} of {self.size} pods are placed: {outcome}")

    def _create_jobs(self) -> None:
        """Create both Jobs in the same second, since the scheduler takes pods by age and then by name."""
        while True:
            time.sleep(1 - time.time() % 1)
            for team in TEAMS:
                metadata = {**self.job["metadata"], "namespace": team}
                self.client.create(JOBS, {**self.job, "metadata": metadata}, manager=USER)
            self.until(lambda: all(len(self._pods(team)) == self.size for team in TEAMS))
            pods = [pod for team in TEAMS for pod in self._pods(team)]
            if len({pod["metadata"]["creationTimestamp"] for pod in pods}) == 1:
                return
            for team in TEAMS:
                self.client.delete(JOBS, self.job["metadata"]["name"], team)
            self.until(lambda: not any(map(self._pods, TEAMS)))

    def _pods(self, team: str) -> list[Object]:
        return [body for body in self.recorder.objects(team) if body["kind"] == PODS.kind]


def show_plain(tell: Callable[[str], None]) -> None:
    """Show both Jobs on a cluster without Muster: each gets a part of its pods, and waits for the rest."""
    with embedded_server(controllers=True, policies=()) as server:
        client = Client.for_server(server.url, user_agent="muster-run")
        with TimelineRecorder(client) as recorder:
            jobs = TwoJobs(client, recorder, tell)
            jobs.create()
            jobs.join()
            jobs.until(lambda: sum(map(jobs.bound, TEAMS)) == COUNT * GPUS)
            for team in TEAMS:
                jobs.tell_of(team, f"waits for {jobs.size - jobs.bound(team)} more")


def show_gangs(client: Client, recorder: TimelineRecorder, tell: Callable[[str], None]) -> None:
    """Show the same Jobs as gangs: one is placed, the other one holds nothing until there is room."""
    jobs = TwoJobs(client, recorder, tell)
    jobs.create()
    jobs.join()
    jobs.until(lambda: any(jobs.bound(team) == jobs.size for team in TEAMS))
    first, second = sorted(TEAMS, key=jobs.bound, reverse=True)
    jobs.tell_of(first, "runs")
    free = f"{COUNT * GPUS - jobs.size} of {jobs.size} "  # when all nodes have joined and the first is placed
    recorder.until(lambda: jobs.refusal(second).startswith(free), _SETTLE_SECONDS)
    jobs.tell_of(second, f"waits: {jobs.refusal(second)}")
    jobs.tell(f"one more node of {GPUS} GPUs joins")
    jobs.add_node(COUNT + 1)
    jobs.until(lambda: jobs.bound(second) == jobs.size)
    jobs.tell_of(second, "runs")
