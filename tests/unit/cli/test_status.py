"""`muster status`: waiting owners, since when, and why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from muster.cli.status import read_status
from muster.cluster.errors import Forbidden
from muster.cluster.observe.snapshot import Snapshot
from muster.data import EVENTING
from muster.objects.resources import Resource
from muster.simulator.apiserver import ApiServer
from muster.simulator.overlays import load
from tests.support import builders as b
from tests.unit.cli.conftest import Muster

POLICIES = load(EVENTING / "admission")
GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"
SINCE = "2026-11-21T08:00:00Z"


def a_condition(kind: str, reason: str, message: str, status: str = "False") -> b.Modifier:
    """A condition since eight o'clock."""
    condition = {"type": kind, "status": status, "reason": reason, "message": message}

    def add(body: Any) -> None:
        b.with_condition(kind)(body)
        body["status"]["conditions"][-1] = condition | {"lastTransitionTime": SINCE}

    return add


def since_eight(body: Any) -> None:
    """Let an object have been created at eight o'clock."""
    body["metadata"]["creationTimestamp"] = SINCE


def a_member(*modifiers: b.Modifier, name: str = "llama-0") -> Any:
    """A pod of the Job's group that waits with our gate, since eight o'clock."""
    first = b.stamped(GROUP), b.gated(GATE), b.named(name), since_eight
    return b.a_pod(b.a_job(), 0, *first, *modifiers)


UNGATED = b.with_spec(schedulingGates=[])
NO_ROOM = a_condition("PodGroupsScheduled", "Unschedulable", "0 of 1 group scheduled")
NAMES_GROUP = a_condition("PodGroupsScheduled", "Unschedulable", f"{GROUP}: 0 of 2 bound")
SCHEDULED = a_condition("PodGroupsScheduled", "Scheduled", "all", status="True")
NO_GANG = a_condition("muster.dev/PodGroupsReady", "InvalidPolicy", "groups[0].name: is no DNS label")
NOT_PLACED = a_condition("muster.dev/PodGroupsScheduled", "InvalidPolicy", "scheduled one by one")
REFUSED = b.a_pod_group(GROUP, a_condition("PodGroupInitiallyScheduled", "Unschedulable", "no room"))
INVALID = b.annotated({"muster.dev/fallback": "InvalidPolicy: workload.groups[0].name: is no DNS label"})
FALLBACK = b.a_pod_group(GROUP, INVALID, since_eight, min_count=None)
OF_JOBSET = b.labelled({"jobset.sigs.k8s.io/jobset-name": "llama"})
POD_GROUP = f"podgroup/{GROUP}"
ONE_BY_ONE = [b.a_job(NO_GANG, NOT_PLACED), b.a_pod_group(), a_member(UNGATED, b.bound)]
WAITS = ("trainjob/llama", "Waiting", "Unschedulable")

Row = tuple[str, str, str]
ROWS: list[tuple[list[Any], list[Row]]] = [
    ([b.a_trainjob(NO_ROOM), b.a_jobset()], [WAITS]),
    ([b.a_trainjob(SCHEDULED)], []),
    ([b.a_trainjob(NO_ROOM, b.with_condition("Complete"))], []),
    ([a_member()], [(POD_GROUP, "Waiting", "WaitingForPodGroup")]),
    ([b.a_pod_group(), a_member(), a_member(name="llama-1")], [(POD_GROUP, "Waiting", "SchedulingGated")]),
    ([a_member(b.unstamped, b.gated(GATE))], [("pod/llama-0", "Waiting", "ApiNotServed")]),
    ([b.a_pod_group(), a_member(b.gated("other"))], []),
    ([a_member(b.bound)], []),
    ([FALLBACK], [(POD_GROUP, "Waiting", "InvalidPolicy")]),
    ([FALLBACK, a_member(UNGATED, b.bound)], [(POD_GROUP, "NoGang", "InvalidPolicy")]),
    ([REFUSED], [(POD_GROUP, "Waiting", "Unschedulable")]),
    ([b.a_trainjob(NAMES_GROUP), REFUSED, a_member(OF_JOBSET, UNGATED)], [WAITS]),
    (ONE_BY_ONE, [("job/llama", "NoGang", "InvalidPolicy")]),
    ([*ONE_BY_ONE, a_member(UNGATED)], [("job/llama", "Waiting", "InvalidPolicy")]),
]


@pytest.mark.parametrize(("objects", "expected"), ROWS)
def test_waiting_owners_and_groups_are_listed(objects: list[Any], expected: list[Row]) -> None:
    """Each thing that waits is one row, and nothing else is."""
    rows = read_status(Snapshot(objects)).items
    assert [(row.what, row.state, row.reason) for row in rows] == expected
    assert {(row.namespace, row.since) for row in rows} <= {("team-a", SINCE)}


def no_gang(owner: Any, *modifiers: b.Modifier) -> list[Any]:
    """An owner with a pod that waits without a group."""
    found = owner if owner["kind"] == "Job" else b.a_child_job(b.a_jobset(), "workers", 0)
    pod = b.a_pod(found, 0, b.unstamped)
    pod["metadata"]["labels"].pop("muster.dev/group", None)
    for modify in modifiers:
        modify(pod)
    return [owner, pod]


PLAIN = b.a_job(label=None)
NOT_OPTED_IN, OPTED_IN = b.a_namespace(enabled=False), b.a_namespace()
MISTAKEN = b.a_namespace(b.labelled({"muster.dev/gang-jobs": "true"}))
OPTED_OUT = b.labelled({"muster.dev/group": "none"})


@pytest.mark.parametrize(
    ("objects", "name", "why"),
    [
        ([NOT_OPTED_IN, *no_gang(PLAIN)], "job/llama (team-a)", "no such label"),
        ([MISTAKEN, *no_gang(b.a_jobset())], "jobset/llama (team-a)", "the value `true`"),
        ([MISTAKEN, b.a_jobset_of_trainjob(), *no_gang(b.a_trainjob())], "trainjob/llama (team-a)", "`true`"),
        ([OPTED_IN, *no_gang(PLAIN)], "job/llama (team-a)", "was created before"),
        ([OPTED_IN, *no_gang(PLAIN, OPTED_OUT)], "job/llama (team-a)", "muster.dev/group: none"),
        ([NOT_OPTED_IN, *no_gang(PLAIN, b.bound)], "", ""),
        ([NOT_OPTED_IN, *no_gang(PLAIN, b.with_spec(schedulerName="volcano"))], "", ""),
        ([NOT_OPTED_IN, *no_gang(b.a_job(label=None, pods=1))], "", ""),
        ([NOT_OPTED_IN, b.a_job(), a_member()], "", ""),
    ],
)
def test_jobs_that_wait_without_a_gang_are_named_with_the_reason(
    objects: list[Any], name: str, why: str
) -> None:
    """Those that would be gangs in an opted-in namespace, by their root owner."""
    found = read_status(Snapshot(objects)).no_gangs
    assert list(found.values()) == ([[name]] if name else [])
    assert why in "".join(found)


def test_a_kind_that_may_not_be_listed_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are listed nevertheless."""
    every = Snapshot.list

    def listed(cluster: Snapshot, resource: Resource, *of: Any, **options: Any) -> Any:
        if resource.plural == "trainjobs":
            raise Forbidden("not yours", status=403)
        return every(cluster, resource, *of, **options)

    monkeypatch.setattr(Snapshot, "list", listed)
    found = read_status(Snapshot([b.a_trainjob(NO_ROOM), a_member()]))
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


def test_of_a_cluster(muster: Muster, server: ApiServer, kubeconfig: str) -> None:
    """The tables and the data of a cluster; that nothing waits is said too."""
    options = ["status", "--kubeconfig", kubeconfig]
    empty = muster(*options, "-A")
    assert (empty.exit_code, "nothing is waiting" in empty.stdout) == (0, True)
    assert "Muster is not installed here" in empty.stdout
    server.load([*POLICIES[:3], *ONE_BY_ONE, b.a_trainjob(NO_ROOM, b.named("qwen"))])
    waits, runs = (table.splitlines() for table in muster(*options, "-n", "team-a").stdout.split("\n\n"))
    assert waits[0].split() == ["NAMESPACE", "WAITS", "FOR", "REASON", "MESSAGE"]
    assert [line.split()[1:4:2] for line in waits[1:]] == [["trainjob/qwen", "Unschedulable"]]
    assert [line.split()[1:4:2] for line in runs[1:-1]] == [["job/llama", "InvalidPolicy"]]
    as_data = muster(*options, "-A", "-o", "json")
    assert [item["what"] for item in json.loads(as_data.stdout)] == ["job/llama", "trainjob/qwen"]
    assert (as_data.exit_code, "missing: admission policy muster-stamp-pods;" in as_data.stderr) == (1, True)


def test_a_handful_of_jobs_without_a_gang_is_named(
    muster: Muster, server: ApiServer, kubeconfig: str
) -> None:
    """The others are counted."""
    for number in range(7):
        job = b.a_job(b.named(f"llama-{number}"), label=None)
        server.load(no_gang(job))
    result = muster("status", "--kubeconfig", kubeconfig, "-A")
    assert "nothing is waiting" not in result.stdout
    assert "job/llama-4 (team-a) and 2 more: it was created before" in result.stdout
