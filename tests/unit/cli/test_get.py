"""`muster get`: every gang in one row, and what a shell completes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from muster.cli import main
from muster.replay.gangs import GangState, gangs_of
from muster.simulator.apiserver import ApiServer
from tests.support import builders as b
from tests.support.processes import running
from tests.unit.cli.conftest import Muster, assert_names

GROUP = "llama-main-33333333"
GATED = b.gated("muster.dev/pod-group")
UNGATED = b.with_spec(schedulingGates=[])
NO_ROOM = b.with_condition("PodGroupInitiallyScheduled", "False", "Unschedulable", "0/3 nodes are available")
FALLBACK = b.annotated({"muster.dev/fallback": "InvalidPolicy: groups[0]: is no DNS label"})
MANAGED = {"app.kubernetes.io/managed-by": "muster"}
SET = b.an_object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "vllm", "99999999-1")


def of_job(reason: str, status: str = "False", kind: str = "PodGroupsScheduled") -> Any:
    """The Job with a condition of Muster's."""
    return b.a_job(b.with_condition(f"muster.dev/{kind}", status, reason))


def members(*modifiers: b.Modifier) -> list[Any]:
    """Both pods of the Job."""
    return [b.a_pod(b.a_job(), index, b.stamped(GROUP), *modifiers) for index in range(2)]


def a_group(*modifiers: b.Modifier) -> Any:
    """The PodGroup of the Job."""
    return b.a_pod_group(GROUP, b.owned_by(b.a_job()), *modifiers, min_count=2)


BOUND = members(UNGATED, b.bound)
ROWS: list[tuple[str, list[Any], str]] = [
    ("stamped", [b.a_job(), *members(GATED)], "Waiting WaitingForPodGroup 0/1 0/2"),
    ("gated", [b.a_job(), a_group(), *members(GATED)], "Waiting SchedulingGated 0/1 0/2"),
    ("no pods", [b.a_job(), a_group()], "Waiting WaitingForPods 0/1 0/2"),
    ("refused", [b.a_job(), a_group(NO_ROOM), *members(UNGATED)], "Refused Unschedulable 0/1 0/2"),
    ("told", [of_job("Unschedulable"), a_group(), *BOUND[:1]], "Refused Unschedulable 0/1 1/2"),
    ("bound", [b.a_job(), a_group(b.placed), *BOUND], "Placed Scheduled 1/1 2/2"),
    ("told late", [of_job("Unschedulable"), a_group(b.placed), *BOUND], "Placed Scheduled 1/1 2/2"),
    ("ignored", [of_job("GroupsIgnored"), a_group(), *BOUND], "Waiting GroupsIgnored 1/1 2/2"),
    ("fallback", [b.a_job(), a_group(FALLBACK), *BOUND], "NoGang InvalidPolicy 1/1 2/2"),
    ("held", [of_job("InvalidPolicy", kind="PodGroupsReady")], "NoGang InvalidPolicy 0/0 0/0"),
    ("half", [b.a_job(), a_group(), BOUND[0]], "Waiting WaitingForPods 0/1 1/2"),
    ("template", [b.a_job(), b.a_workload(b.a_gang("main", 2))], "Waiting WaitingForPodGroup 0/1 0/2"),
]


@pytest.mark.parametrize(
    ("objects", "expected"), [pytest.param(objects, row, id=name) for name, objects, row in ROWS]
)
def test_a_gang_is_one_row(objects: list[Any], expected: str) -> None:
    """With its state and reason, groups placed/wanted and pods bound/needed."""
    (gang,) = gangs_of(objects)
    data = gang.as_data()
    groups, pods = data["groups"], data["pods"]
    counts = f"{groups['placed']}/{groups['wanted']} {pods['bound']}/{pods['needed']}"
    assert (data["what"], f"{data['state']} {data['reason']} {counts}") == ("job/llama", expected)


def test_whatever_owns_a_group_of_musters_is_listed() -> None:
    """Also a kind that Muster does not read; a group without owner is listed by its own name."""
    of_set, alone = (b.a_pod_group(name, b.of_uid(name)) for name in "gh")
    for group in (of_set, alone):
        group["metadata"] |= {"labels": MANAGED, "ownerReferences": []}
    b.owned_by(SET)(of_set)
    assert [gang.what for gang in gangs_of([of_set, alone])] == ["podgroup/h", "leaderworkerset/vllm"]


def test_what_muster_does_not_manage_is_no_gang() -> None:
    """A Job without groups, and the PodGroup of somebody else."""
    foreign = b.a_pod_group("other")
    foreign["metadata"]["labels"] = {}
    assert gangs_of([b.a_job(), b.a_pod(b.a_job(), 0, b.unstamped), foreign]) == []


def test_a_finished_gang_is_told_by_its_end() -> None:
    """Its pods count as bound, since they had their nodes."""
    ended = of_job("Scheduled", "True")
    b.with_condition("Complete")(ended)
    (gang,) = gangs_of([ended, a_group(b.placed), *members(UNGATED, b.bound, b.succeeded)])
    assert gang.told[:2] == (GangState.FINISHED, "Complete")


def load(server: ApiServer) -> None:
    """A gang that waits, and a namespace without any."""
    server.load([of_job("Unschedulable"), a_group(NO_ROOM), *members(UNGATED)])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-A"], ["NAMESPACE", "team-a", "job/llama", "0/1", "0/2", "Unschedulable"]),
        (["-n", "team-a"], ["OWNER", "job/llama"]),
        (["-A", "llama", "-o", "wide"], ["MESSAGE", "Unschedulable"]),
        (["-A", "-o", "name"], ["job.batch/llama\n"]),
    ],
)
def test_gangs_are_listed(
    muster: Muster, server: ApiServer, kubeconfig: str, arguments: list[str], expected: list[str]
) -> None:
    """As a table, or by their names for kubectl."""
    load(server)
    result = muster("get", "--kubeconfig", kubeconfig, *arguments)
    assert result.exit_code == 0, result.output
    assert_names(result.stdout, *expected)


def test_gangs_are_data(muster: Muster, server: ApiServer, kubeconfig: str) -> None:
    """The same in JSON and YAML."""
    load(server)
    (as_json, as_yaml) = (
        muster("get", "-A", "--kubeconfig", kubeconfig, "-o", output).stdout for output in ("json", "yaml")
    )
    (gang,) = json.loads(as_json)
    assert yaml.safe_load(as_yaml) == [gang]
    assert gang["podGroups"][0]["message"] == "0/3 nodes are available"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [(["-n", "default"], 0, "no gangs in namespace default"), (["-A", "job/x"], 1, "no gang job/x")],
)
def test_nothing_found_is_said(
    muster: Muster, server: ApiServer, kubeconfig: str, arguments: list[str], code: int, told: str
) -> None:
    """On standard error; a name that is no gang fails."""
    server.load([b.a_namespace(b.named("default"), b.of_uid("u"))])
    result = muster("get", "--kubeconfig", kubeconfig, *arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert told in result.stderr


def test_changes_are_followed(server: ApiServer, kubeconfig: str) -> None:
    """In a pipe a row comes when it changes; nothing runs but the watch."""
    load(server)
    with running("get", "-A", "-w", "--kubeconfig", kubeconfig) as process:
        assert "Unschedulable" in process.line("job/llama")
        server.load([b.an_object("v1", "Namespace", "team-b", "77")])
        other = a_group(b.named("other"), b.of_uid("88"))
        other["metadata"] |= {"namespace": "team-b", "ownerReferences": [], "labels": MANAGED}
        server.load([other])
        assert "podgroup/other" in process.line("team-b")
        assert process.end() == 0


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("muster g", ["get"]),
        ("muster explain -n team", ["team-a"]),
        ("muster get --namespace t", ["team-a"]),
        ("muster explain tr", ["trainjob/"]),
        ("muster run --story does", ["does-not-fit"]),
    ],
)
def test_a_shell_completes(kubeconfig: str, typed: str, completed: list[str]) -> None:
    """Commands, stories, kinds, and the namespaces of the cluster."""
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    asked = {"_MUSTER_COMPLETE": "bash_complete", "KUBECONFIG": kubeconfig, **words}
    result = CliRunner().invoke(main, [], env=asked)
    assert [line.partition(",")[2] for line in result.stdout.splitlines()] == completed


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    """By the line of docs/look.md."""
    line = "_MUSTER_COMPLETE=bash_source muster"
    assert line in (Path(__file__).parents[3] / "docs/look.md").read_text()
    result = CliRunner().invoke(main, [], env={"_MUSTER_COMPLETE": f"{shell}_source"})
    assert "_muster_completion" in result.stdout
