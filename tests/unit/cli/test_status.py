"""`muster status`: waiting owners, since when, and why."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.cli.status import _age
from muster.cluster.errors import Forbidden
from muster.cluster.observe.snapshot import Snapshot
from muster.objects.resources import Resource
from muster.operator.status import read_status
from muster.simulator.apiserver import ApiServer, resource_definitions
from tests.support import builders as b
from tests.unit.cli.conftest import Muster

GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"
SINCE = "2026-11-21T08:00:00Z"


def a_condition(kind: str, reason: str, message: str, status: str = "False") -> b.Modifier:
    """A condition since eight o'clock."""
    condition = {"type": kind, "status": status, "reason": reason, "message": message}

    def add(body: Any) -> None:
        conditions = body.setdefault("status", {}).setdefault("conditions", [])
        conditions.append(condition | {"lastTransitionTime": SINCE})

    return add


def since_eight(body: Any) -> None:
    """Let an object have been created at eight o'clock."""
    body["metadata"]["creationTimestamp"] = SINCE


def a_member(*modifiers: b.Modifier, name: str = "llama-0") -> Any:
    """A pod of the Job's group that waits with our gate, since eight o'clock."""
    first = b.stamped(GROUP), b.gated(GATE), b.named(name), since_eight
    return b.a_pod(b.a_job(), 0, *first, *modifiers)


UNGATED = b.with_spec(schedulingGates=[])
NO_ROOM = a_condition("PodGroupsScheduled", "Unschedulable", "0 of 1 groups scheduled")
NAMES_GROUP = a_condition("PodGroupsScheduled", "Unschedulable", f"{GROUP}: 0 of 2 bound")
NO_GANG = a_condition("muster.dev/PodGroupsReady", "InvalidPolicy", "groups[0].name: is no DNS label")
NOT_PLACED = a_condition("muster.dev/PodGroupsScheduled", "InvalidPolicy", "scheduled one by one")
REFUSED = a_condition("PodGroupInitiallyScheduled", "Unschedulable", "no room")
INVALID = b.annotated({"muster.dev/fallback": "InvalidPolicy: workload.groups[0].name: is no DNS label"})
FALLBACK = b.a_pod_group(GROUP, INVALID, since_eight, min_count=None)
OF_JOBSET = b.labelled({"jobset.sigs.k8s.io/jobset-name": "llama"})
POD_GROUP = f"podgroup/{GROUP}"


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [b.a_trainjob(NO_ROOM), b.a_jobset()],
            [("trainjob/llama", "Waiting", "Unschedulable")],
            id="a TrainJob whose condition says False waits",
        ),
        pytest.param(
            [b.a_trainjob(a_condition("PodGroupsScheduled", "Scheduled", "all", status="True"))],
            [],
            id="a condition that is True is no wait",
        ),
        pytest.param(
            [b.a_trainjob(NO_ROOM, b.with_condition("Complete"))], [], id="what is finished does not wait"
        ),
        pytest.param(
            [a_member()], [(POD_GROUP, "Waiting", "WaitingForPodGroup")], id="a gated pod without its group"
        ),
        pytest.param(
            [b.a_pod_group(), a_member(), a_member(name="llama-1")],
            [(POD_GROUP, "Waiting", "SchedulingGated")],
            id="gated pods whose group exists",
        ),
        pytest.param(
            [a_member(b.unstamped, b.gated(GATE))],
            [("pod/llama-0", "Waiting", "ApiNotServed")],
            id="a gated pod that was never given a group",
        ),
        pytest.param([b.a_pod_group(), a_member(b.gated("other"))], [], id="other people's gates are theirs"),
        pytest.param([a_member(b.bound)], [], id="a pod on a node does not wait"),
        pytest.param(
            [FALLBACK], [(POD_GROUP, "Waiting", "InvalidPolicy")], id="a fallback group shows why it is none"
        ),
        pytest.param(
            [FALLBACK, a_member(UNGATED, b.bound)],
            [(POD_GROUP, "NoGang", "InvalidPolicy")],
            id="a fallback group whose pods run",
        ),
        pytest.param(
            [b.a_pod_group(GROUP, REFUSED)],
            [(POD_GROUP, "Waiting", "Unschedulable")],
            id="an unscheduled group is listed where no owner has a condition",
        ),
        pytest.param(
            [b.a_trainjob(NAMES_GROUP), b.a_pod_group(GROUP, REFUSED), a_member(OF_JOBSET, UNGATED)],
            [("trainjob/llama", "Waiting", "Unschedulable")],
            id="a group that a condition names is listed once",
        ),
        pytest.param(
            [b.a_job(NO_GANG, NOT_PLACED), b.a_pod_group(), a_member(UNGATED, b.bound)],
            [("job/llama", "NoGang", "InvalidPolicy")],
            id="an owner whose pods run one by one",
        ),
        pytest.param(
            [b.a_job(NO_GANG, NOT_PLACED), b.a_pod_group(), a_member(UNGATED, b.bound), a_member(UNGATED)],
            [("job/llama", "Waiting", "InvalidPolicy")],
            id="an owner one of whose pods waits",
        ),
    ],
)
def test_waiting_owners_and_groups_are_listed(
    objects: list[Any], expected: list[tuple[str, str, str]]
) -> None:
    """Each thing that waits is one row, and nothing else is."""
    rows = read_status(Snapshot(objects)).items
    assert [(row.what, row.state, row.reason) for row in rows] == expected
    assert {(row.namespace, row.since) for row in rows} <= {("team-a", SINCE)}


class _Closed(Snapshot):
    """A cluster that refuses to list TrainJobs."""

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Any:
        """Refuse, or return the objects."""
        if resource.plural == "trainjobs":
            raise Forbidden("not yours", status=403)
        return super().list(resource, namespace, labels=labels, fields=fields, as_of=as_of)


def test_a_kind_that_may_not_be_listed_is_reported() -> None:
    """The others are listed nevertheless."""
    found = read_status(_Closed([b.a_trainjob(NO_ROOM), a_member()]))
    assert found.not_read == {"trainjobs": "not yours"}
    assert [item.what for item in found.items] == [POD_GROUP]


def test_a_condition_of_another_namespace_hides_no_group() -> None:
    """A tenant has a say in the messages of his own owners, and groups of two namespaces may share a name."""
    elsewhere = b.a_trainjob(NAMES_GROUP)
    elsewhere["metadata"]["namespace"] = "team-b"
    found = read_status(Snapshot([elsewhere, a_member()])).items
    assert [(item.namespace, item.what) for item in found] == [
        ("team-a", POD_GROUP),
        ("team-b", "trainjob/llama"),
    ]


@pytest.mark.parametrize(
    ("since", "age"), [("2026-11-21T07:48:00Z", "12m"), ("2026-11-18T03:59:59Z", "3d4h")]
)
def test_age(since: str, age: str) -> None:
    """How long it has waited, in the two largest units."""
    assert _age(since, datetime(2026, 11, 21, 8, tzinfo=UTC)) == age


def test_of_a_cluster(muster: Muster, tmp_path: Path) -> None:
    """The tables and the data of a cluster; that nothing waits is said too."""
    with ApiServer() as server:
        server.load([*resource_definitions(), b.a_namespace()])
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        options = ["status", "--kubeconfig", str(tmp_path / "kubeconfig")]
        assert "nothing is waiting" in muster(*options, "-A").stdout
        server.load([b.a_job(NO_GANG, NOT_PLACED), b.a_pod_group(), a_member(UNGATED, b.bound)])
        server.load([b.a_trainjob(NO_ROOM, b.named("qwen"))])
        result = muster(*options, "-n", "team-a")
        texts = [muster(*options, "-A", "-o", output).stdout for output in ("json", "yaml")]
        assert "nothing is waiting" in muster(*options).stdout
    assert result.exit_code == 0
    waits, runs = (table.splitlines() for table in result.stdout.split("\n\n"))
    assert waits[0].split() == ["NAMESPACE", "WAITS", "FOR", "REASON", "MESSAGE"]
    assert [line.split()[1:4:2] for line in waits[1:]] == [["trainjob/qwen", "Unschedulable"]]
    assert [line.split()[1:4:2] for line in runs[1:]] == [["job/llama", "InvalidPolicy"]]
    found = json.loads(texts[0])
    assert found == yaml.safe_load(texts[1])
    assert {(item["what"], item["state"], item["since"]) for item in found} == {
        ("job/llama", "NoGang", SINCE),
        ("trainjob/qwen", "Waiting", SINCE),
    }
