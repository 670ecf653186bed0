"""`muster status`: waiting owners, since when, and why."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from muster.cli.status import _age
from muster.cluster.errors import Forbidden
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.resources import Resource
from muster.operator.status import State, read_status
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support import builders as b
from tests.unit.cli.conftest import Muster

GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"
SINCE = "2026-11-21T08:00:00Z"


def a_condition(
    kind: str, reason: str, message: str, status: str = "False", since: str | None = SINCE
) -> b.Modifier:
    """A condition, usually since eight o'clock."""
    condition = {"type": kind, "status": status, "reason": reason, "message": message}

    def add(body: Any) -> None:
        body.setdefault("status", {}).setdefault("conditions", []).append(
            condition | {"lastTransitionTime": since}
        )

    return add


def since_eight(body: Any) -> None:
    """Let an object have been created at eight o'clock."""
    body["metadata"]["creationTimestamp"] = SINCE


def a_member(*modifiers: b.Modifier, name: str = "llama-0") -> Any:
    """A pod of the Job's group that waits with our gate, since eight o'clock."""
    pod = b.a_pod(b.a_job(), 0, b.stamped(GROUP), b.gated(GATE), b.named(name), *modifiers)
    since_eight(pod)
    return pod


UNGATED = b.with_spec(schedulingGates=[])
NO_ROOM = a_condition("PodGroupsScheduled", "Unschedulable", "0 of 1 groups scheduled")
MISSING = (f"podgroup/{GROUP}", SINCE, "WaitingForPodGroup")
INVALID = {"muster.dev/fallback": "InvalidPolicy: workload.groups[0].name: is no DNS label"}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
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
            [b.a_trainjob(a_condition("PodGroupsScheduled", "Scheduled", "all", status="True"))],
            [],
            id="a condition that is True is no wait",
        ),
        pytest.param(
            [b.a_trainjob(NO_ROOM, b.with_condition("Complete"))], [], id="what is finished does not wait"
        ),
        pytest.param([a_member()], [MISSING], id="a gated pod without its group"),
        pytest.param(
            [b.a_pod_group(), a_member(), a_member(name="llama-1")],
            [(f"podgroup/{GROUP}", SINCE, "SchedulingGated")],
            id="gated pods whose group exists",
        ),
        pytest.param(
            [a_member(b.unstamped, b.gated(GATE))],
            [("pod/llama-0", SINCE, "ApiNotServed")],
            id="a gated pod that was never given a group",
        ),
        pytest.param([b.a_pod_group(), a_member(b.gated("other"))], [], id="other people's gates are theirs"),
        pytest.param([a_member(b.bound)], [], id="a pod on a node does not wait"),
        pytest.param(
            [b.a_pod_group(GROUP, b.annotated(INVALID), since_eight, min_count=None)],
            [(f"podgroup/{GROUP}", SINCE, "InvalidPolicy")],
            id="a fallback group shows why there is no gang",
        ),
        pytest.param(
            [b.a_pod_group(GROUP, a_condition("PodGroupInitiallyScheduled", "Unschedulable", "no room"))],
            [(f"podgroup/{GROUP}", SINCE, "Unschedulable")],
            id="an unscheduled group is listed where no owner has a condition",
        ),
        pytest.param(
            [
                b.a_trainjob(a_condition("PodGroupsScheduled", "Unschedulable", f"{GROUP}: 0 of 2 bound")),
                b.a_pod_group(GROUP, a_condition("PodGroupInitiallyScheduled", "Unschedulable", "no room")),
                a_member(b.labelled({"jobset.sigs.k8s.io/jobset-name": "llama"}), UNGATED),
            ],
            [("trainjob/llama", SINCE, "Unschedulable")],
            id="a group that a condition names is listed once",
        ),
    ],
)
def test_waiting_owners_and_groups_are_listed(
    objects: list[Any], expected: list[tuple[str, str, str]]
) -> None:
    """Each thing that waits is one row, and nothing else is."""
    rows = read_status(Snapshot(objects)).items
    assert [(row.what, row.since, row.reason) for row in rows] == expected
    assert {row.namespace for row in rows} <= {"team-a"}


NO_GANG = a_condition("muster.dev/PodGroupsReady", "InvalidPolicy", "groups[0].name: is no DNS label")
PLACED = a_condition("muster.dev/PodGroupsScheduled", "Scheduled", "1 of 1", status="True")
NOT_PLACED = a_condition(
    "muster.dev/PodGroupsScheduled", "InvalidPolicy", "the pods are scheduled one by one"
)


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [b.a_job(NO_GANG, PLACED), b.a_pod_group(), a_member(UNGATED, b.bound)],
            {"job/llama": State.NO_GANG},
            id="its pods run",
        ),
        pytest.param(
            [
                b.a_job(NO_GANG, NOT_PLACED),
                b.a_pod_group(),
                a_member(UNGATED, b.bound),
                a_member(UNGATED, name="llama-1"),
            ],
            {"job/llama": State.WAITING},
            id="one of its pods waits",
        ),
        pytest.param(
            [b.a_job(NO_GANG, NOT_PLACED), a_member()],
            {"job/llama": State.WAITING, f"podgroup/{GROUP}": State.WAITING},
            id="its pods are held by the gate, with onFailure Hold",
        ),
        pytest.param(
            [b.a_pod_group(GROUP, b.annotated(INVALID), min_count=None), a_member(UNGATED, b.bound)],
            {f"podgroup/{GROUP}": State.NO_GANG},
            id="a fallback PodGroup whose pods run",
        ),
        pytest.param(
            [b.a_pod_group(GROUP, b.annotated(INVALID), min_count=None), a_member(UNGATED)],
            {f"podgroup/{GROUP}": State.WAITING},
            id="a fallback PodGroup whose pods have no nodes",
        ),
    ],
)
def test_owners_running_without_a_gang_are_not_waiting(
    objects: list[Any], expected: dict[str, State]
) -> None:
    """Both are listed, in separate states."""
    assert {item.what: item.state for item in read_status(Snapshot(objects)).items} == expected


class _Closed(Snapshot):
    """A cluster that refuses to list some kinds."""

    errors: ClassVar[dict[str, Exception]] = {}

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Any:
        """Refuse, or return the objects."""
        if resource.plural in self.errors:
            raise self.errors[resource.plural]
        return super().list(resource, namespace, labels=labels, fields=fields, as_of=as_of)


def test_a_kind_that_may_not_be_listed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are listed nevertheless."""
    monkeypatch.setattr(_Closed, "errors", {"trainjobs": Forbidden("not yours", status=403)})
    found = read_status(_Closed([b.a_trainjob(NO_ROOM), a_member()]))
    assert found.not_read == {"trainjobs": "not yours"}
    assert [item.what for item in found.items] == [f"podgroup/{GROUP}"]


def test_a_condition_of_another_namespace_hides_no_group() -> None:
    """A tenant has a say in the messages of his own owners, and groups of two namespaces may share a name."""
    elsewhere = b.a_trainjob(a_condition("PodGroupsScheduled", "Unschedulable", f"{GROUP}: 0 of 2 bound"))
    elsewhere["metadata"]["namespace"] = "team-b"
    found = read_status(Snapshot([elsewhere, a_member()])).items
    assert [(item.namespace, item.what) for item in found] == [
        ("team-a", f"podgroup/{GROUP}"),
        ("team-b", "trainjob/llama"),
    ]


@pytest.mark.parametrize(
    ("since", "age"),
    [
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


def test_of_a_cluster(muster: Muster, kubeconfig: Any) -> None:
    """The tables and the data of a cluster; that nothing waits is said too."""
    path, load = kubeconfig
    load([b.a_namespace()])
    for options in (["-A"], ["-n", "team-a"]):
        assert len(muster("status", "--kubeconfig", path, *options).stdout.splitlines()) == 1
    placed = b.a_pod_group()
    load([b.a_job(NO_GANG, NOT_PLACED), placed, a_member(UNGATED, b.bound)])
    load([b.a_trainjob(NO_ROOM, b.named("qwen"))])
    result = muster("status", "--kubeconfig", path, "-n", "team-a")
    assert result.exit_code == 0
    waits, runs = (table.splitlines() for table in result.stdout.split("\n\n"))
    assert waits[0].split() == ["NAMESPACE", "WAITS", "FOR", "REASON", "MESSAGE"]
    assert [line.split()[1:4:2] for line in waits[1:]] == [["trainjob/qwen", "Unschedulable"]]
    assert [line.split()[1:4:2] for line in runs[1:]] == [["job/llama", "InvalidPolicy"]]
    found = json.loads(muster("status", "--kubeconfig", path, "-A", "-o", "json").stdout)
    assert found == yaml.safe_load(muster("status", "--kubeconfig", path, "-A", "-o", "yaml").stdout)
    assert {(item["what"], item["state"], item["since"]) for item in found} == {
        ("job/llama", "NoGang", SINCE),
        ("trainjob/qwen", "Waiting", SINCE),
    }
    assert "nothing is waiting" in muster("status", "--kubeconfig", path).stdout
