"""`muster status`: waiting owners, since when, and why."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from muster.cli.status import _age
from muster.cluster.snapshot import Snapshot
from muster.operator.status import waiting
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.conftest import Wording
from tests.support import builders as b
from tests.unit.cli.conftest import Muster

GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"
SINCE = "2026-11-21T08:00:00Z"


def a_condition(kind: str, reason: str, message: str, status: str = "False") -> b.Modifier:
    """A condition since eight o'clock."""
    condition = {"type": kind, "status": status, "reason": reason, "message": message}

    def add(body: Any) -> None:
        body.setdefault("status", {}).setdefault("conditions", []).append(
            condition | {"lastTransitionTime": SINCE}
        )

    return add


def a_member(*modifiers: b.Modifier, name: str = "llama-0") -> Any:
    """A pod of the Job's group that waits with our gate, since eight o'clock."""
    pod = b.a_pod(b.a_job(), 0, b.stamped(GROUP), b.gated(GATE), b.named(name), *modifiers)
    pod["metadata"]["creationTimestamp"] = SINCE
    return pod


NO_ROOM = a_condition("PodGroupsScheduled", "Unschedulable", "0 of 1 groups scheduled")
MISSING = (f"podgroup/{GROUP}", SINCE, "WaitingForPodGroup")
INVALID = {"muster.dev/stand-in": "InvalidPolicy: workload.groups[0].name: is no DNS label"}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [b.a_job(), b.a_pod(None, 0, b.unstamped)], [], id="a job without conditions does not wait"
        ),
        pytest.param(
            [b.a_trainjob(NO_ROOM), b.a_jobset()],
            [("trainjob/llama", SINCE, "Unschedulable")],
            id="a TrainJob whose condition says False waits",
        ),
        pytest.param(
            [b.a_job(a_condition("muster.dev/PodGroupsScheduled", "WaitingForPods", "1 exist"))],
            [("job/llama", SINCE, "WaitingForPods")],
            id="a Job's conditions carry a prefix",
        ),
        pytest.param(
            [b.a_jobset(modifiers=[a_condition("PodGroupsReady", "TooManyGroups", "9 groups")])],
            [("jobset/llama", SINCE, "TooManyGroups")],
            id="an owner that was given up tells why",
        ),
        pytest.param(
            [b.a_trainjob(a_condition("PodGroupsScheduled", "Scheduled", "all", status="True"))],
            [],
            id="a condition that is True is no wait",
        ),
        pytest.param(
            [b.a_trainjob(NO_ROOM, b.with_condition("Complete"))], [], id="what is finished does not wait"
        ),
        pytest.param([b.a_trainjob(NO_ROOM, b.being_deleted)], [], id="what is deleted does not wait"),
        pytest.param([a_member()], [MISSING], id="a gated pod without its group"),
        pytest.param(
            [a_member(b.with_spec(schedulingGates=[]))], [MISSING], id="a pod without gate and group"
        ),
        pytest.param(
            [b.a_pod_group(), a_member(), a_member(name="llama-1")],
            [(f"podgroup/{GROUP}", SINCE, "SchedulingGated")],
            id="pods whose gate nobody lifted, though their group exists",
        ),
        pytest.param(
            [a_member(b.unstamped, b.gated(GATE))],
            [("pod/llama-0", SINCE, "ApiNotServed")],
            id="a gated pod that was never given a group",
        ),
        pytest.param([b.a_pod_group(), a_member(b.gated("other"))], [], id="other people's gates are theirs"),
        pytest.param([a_member(b.bound)], [], id="a pod on a node does not wait"),
        pytest.param(
            [b.a_pod_group(GROUP, b.annotated(INVALID), min_count=None)],
            [(f"podgroup/{GROUP}", "", "InvalidPolicy")],
            id="a stand-in tells why there is no gang",
        ),
        pytest.param(
            [b.a_pod_group(GROUP, a_condition("PodGroupInitiallyScheduled", "Unschedulable", "no room"))],
            [(f"podgroup/{GROUP}", SINCE, "Unschedulable")],
            id="a group without a place is told of where no owner has a condition",
        ),
        pytest.param(
            [
                b.a_trainjob(a_condition("PodGroupsScheduled", "Unschedulable", f"{GROUP}: 0 of 2 bound")),
                b.a_pod_group(GROUP, a_condition("PodGroupInitiallyScheduled", "Unschedulable", "no room")),
            ],
            [("trainjob/llama", SINCE, "Unschedulable")],
            id="a group that a condition names is told of once",
        ),
        pytest.param(
            [
                b.a_trainjob(a_condition("PodGroupsScheduled", "Unschedulable", f"{GROUP}-10: 0 of 2 bound")),
                b.a_pod_group(
                    f"{GROUP}-1", a_condition("PodGroupInitiallyScheduled", "Unschedulable", "no room")
                ),
            ],
            [
                (f"podgroup/{GROUP}-1", SINCE, "Unschedulable"),
                ("trainjob/llama", SINCE, "Unschedulable"),
            ],
            id="a group is not told of where a condition names another one that begins with its name",
        ),
    ],
)
def test_what_waits(wording: Wording, objects: list[Any], expected: list[tuple[str, str, str]]) -> None:
    """Each thing that waits is one row, and nothing else is."""
    rows = waiting(Snapshot(objects))
    assert [(row.what, row.since, row.reason) for row in rows] == expected
    assert {row.namespace for row in rows} <= {"team-a"}
    for row in rows:
        wording(row.message)


def test_other_namespaces_are_left_out_when_one_is_named() -> None:
    """As with kubectl."""
    cluster = Snapshot([b.a_trainjob(NO_ROOM)])
    assert waiting(cluster, "team-b") == []
    assert len(waiting(cluster, "team-a")) == 1


@pytest.mark.parametrize(
    ("since", "age"),
    [
        pytest.param("", "-", id="nobody wrote it down"),
        pytest.param("2026-11-21T08:00:05Z", "0s", id="clocks differ"),
        pytest.param("2026-11-21T07:59:48Z", "12s", id="seconds"),
        pytest.param("2026-11-21T07:48:00Z", "12m", id="minutes"),
        pytest.param("2026-11-18T03:59:59Z", "3d4h", id="the two largest units"),
    ],
)
def test_age(since: str, age: str) -> None:
    """How long it has waited."""
    assert _age(since, datetime(2026, 11, 21, 8, tzinfo=UTC)) == age


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Any:
    """An embedded API server, and a way to put objects into it."""
    with ApiServer() as server:
        server.load(resource_definitions())
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        yield str(tmp_path / "kubeconfig"), server.load


def test_of_a_cluster(muster: Muster, kubeconfig: Any, wording: Wording) -> None:
    """The table and the JSON of a cluster; nothing that waits is said too."""
    path, load = kubeconfig
    nothing = muster("status", "--kubeconfig", path).stdout
    (line,) = nothing.splitlines()
    wording(line)
    load([b.a_namespace(), b.a_trainjob(NO_ROOM), a_member()])
    result = muster("status", "--kubeconfig", path)
    assert result.exit_code == 0
    heads, *rows = [line.split() for line in result.stdout.splitlines()]
    assert heads == ["NAMESPACE", "WAITS", "FOR", "REASON", "MESSAGE"]
    assert [(row[1], row[3]) for row in rows] == [
        (f"podgroup/{GROUP}", "WaitingForPodGroup"),
        ("trainjob/llama", "Unschedulable"),
    ]
    found = json.loads(muster("status", "--kubeconfig", path, "--output", "json").stdout)
    assert (found[1]["since"], found[1]["message"]) == (SINCE, "0 of 1 groups scheduled")
    load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-b"}}])
    assert muster("status", "--kubeconfig", path, "-n", "team-b").stdout == nothing


def test_of_a_cluster_without_the_apis(muster: Muster, tmp_path: Path) -> None:
    """No Trainer, no JobSet: nothing of them waits."""
    with ApiServer() as server:
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        status = muster("status", "--kubeconfig", str(tmp_path / "kubeconfig"))
        found = muster("status", "--kubeconfig", str(tmp_path / "kubeconfig"), "--output", "json")
    assert (status.exit_code, json.loads(found.stdout)) == (0, [])
