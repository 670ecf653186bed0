"""`muster status` and `muster check --uninstall` of objects that a tenant made very large, or odd."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.cluster.interface import Cluster
from muster.cluster.observe.snapshot import Snapshot
from muster.cluster.paging import Page
from muster.objects.resources import CONFIGMAPS, JOBS, POD_GROUPS, PODS, Resource
from muster.operator.check import check_policies, check_uninstall
from muster.operator.status import Item, read_status
from muster.simulator.apiserver import ApiServer
from tests.support import builders as b
from tests.unit.cli.conftest import Muster

GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"
MANY = {f"example.com/label-{number}": "value" for number in range(5_000)}
LONG = "X" * 100_000
WORDS = " ".join(map(str, range(1_000)))


def _member(*modifiers: b.Modifier) -> Any:
    """A pod of a group that waits with Muster's gate."""
    return b.a_pod(b.a_job(), 0, b.stamped(GROUP), b.gated(GATE), *modifiers)


def _unmarked(pod: Any) -> None:
    """Remove the group label."""
    del pod["metadata"]["labels"]["muster.dev/group"]


def _fallback(name: str, text: str) -> Any:
    """A basic group in place of a gang, with this annotation."""
    return b.a_pod_group(name, b.annotated({"muster.dev/stand-in": text}), min_count=None)


def _refused(reason: str, message: str) -> b.Modifier:
    """A condition of an owner that waits."""
    condition = {"type": "muster.dev/PodGroupsReady", "status": "False", "reason": reason, "message": message}

    def add(body: Any) -> None:
        body.setdefault("status", {})["conditions"] = [condition]

    return add


def _items(*objects: Any) -> list[Item]:
    return read_status(Snapshot(objects)).items


OTHER_GATES = tuple(f"example.com/{number}" for number in range(1_200))


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [b.a_pod_group(), _member(_unmarked)],
            [(f"podgroup/{GROUP}", "SchedulingGated")],
            id="a pod without its group label",
        ),
        pytest.param(
            [_member(_unmarked)],
            [(f"podgroup/{GROUP}", "WaitingForPodGroup")],
            id="a pod without its group label and its group",
        ),
        pytest.param(
            [b.a_pod_group(), _member(b.gated(*OTHER_GATES, GATE))],
            [(f"podgroup/{GROUP}", "SchedulingGated")],
            id="a pod with many other gates",
        ),
        pytest.param(
            [_member(_unmarked, b.with_spec(schedulingGates=[]))], [], id="a group of the user's own"
        ),
    ],
)
def test_a_gated_pod_is_listed_whatever_its_labels(
    objects: list[Any], expected: list[tuple[str, str]]
) -> None:
    """It waits, although a user removed the label; pods that Muster does not group are not its business."""
    assert [(item.what, item.reason) for item in _items(*objects)] == expected


def _ungrouped(name: str, job: Any) -> Any:
    """A pod of a Job that waits with Muster's gate, without a group."""
    return b.a_pod(job, 0, b.unstamped, b.gated(GATE), b.named(name))


OTHER = b.a_job(b.named("other"), _refused("InvalidPolicy", f"groups[0].name: {GROUP}, llama-0"))
"""A Job of another user, whose policy names the group and the pod, and so its condition."""


@pytest.mark.parametrize(
    ("pods", "waiting"),
    [
        pytest.param([_member()], f"podgroup/{GROUP}", id="a group"),
        pytest.param(
            [_member(), b.a_pod(OTHER, 0, b.stamped(GROUP), b.gated(GATE))],
            f"podgroup/{GROUP}",
            id="a group that a pod of the other user names",
        ),
        pytest.param([_ungrouped("llama-0", b.a_job())], "pod/llama-0", id="a pod without a group"),
        pytest.param(
            [_ungrouped("llama-0", OTHER), _ungrouped("llama-1", b.a_job())],
            "pod/llama-0",
            id="pods without a group, the first of which is the other user's",
        ),
    ],
)
def test_a_condition_hides_no_pods_of_other_owners(pods: list[Any], waiting: str) -> None:
    """A user chooses words of its message, in a policy with a fault."""
    assert {item.what for item in _items(OTHER, *pods)} == {"job/other", waiting}


def test_a_condition_hides_the_groups_of_its_owner() -> None:
    """They are named in the owner's row."""
    pods = [b.a_pod(OTHER, index, b.stamped(GROUP), b.gated(GATE)) for index in (0, 1)]
    assert {item.what for item in _items(OTHER, *pods)} == {"job/other"}


def test_a_condition_hides_the_pods_without_a_group_of_its_owner() -> None:
    """If it names the oldest that waits."""
    pods = [_ungrouped(name, OTHER) for name in ("llama-0", "llama-1")]
    grouped = b.a_pod(OTHER, 0, b.stamped(GROUP), b.gated(GATE), b.named("a-grouped"))
    assert {item.what for item in _items(OTHER, *pods, grouped)} == {"job/other"}
    older = _ungrouped("a-first", OTHER)
    assert {item.what for item in _items(OTHER, *pods, older)} == {"job/other", "pod/a-first"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("InvalidPolicy: the field is wrong", "InvalidPolicy", id="one of Muster's"),
        pytest.param("MyReason2: words", "MyReason2", id="one of another step"),
        pytest.param(f"{LONG}: words", "", id="a long word"),
        pytest.param("two words: more", "", id="words"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_only_a_word_of_an_annotation_is_a_reason(text: str, reason: str) -> None:
    """Anyone who may write PodGroups can write the annotation."""
    (item,) = _items(_fallback(GROUP, text))
    assert item.reason == reason
    assert text.removeprefix(f"{reason}: ")[:1_000] in item.message


def test_texts_of_conditions_and_annotations_are_cut() -> None:
    """They are kept for all objects of a cluster, and printed."""
    items = _items(_fallback(GROUP, f"InvalidPolicy: {LONG}"), b.a_job(_refused(LONG, LONG)))
    assert len(items) == 2
    assert max(len(item.message) for item in items) < 2_100
    assert max(len(item.reason) for item in items) < 140


def test_one_long_text_does_not_widen_other_rows(muster: Muster, tmp_path: Path) -> None:
    """A table is as wide as its longest cell; one annotation would print a megabyte for each row."""
    long = b.a_job(b.named("long"), _refused(LONG, LONG))
    with ApiServer() as server:
        server.load([b.a_namespace(), long, *(_fallback(f"group-{number}", "A: b") for number in range(100))])
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        result = muster("status", "-A", "--kubeconfig", str(tmp_path / "kubeconfig"))
    rows = result.stdout.splitlines()
    assert len(rows) == 102
    assert max(len(row) for row in rows if "job/long" not in row) < 1_000
    assert max(map(len, rows)) < 5_000


class _Pages(Snapshot):
    """A cluster of many copies of one object; each page has one, which is parsed anew."""

    def __init__(self, resource: Resource, body: Any, count: int) -> None:
        super().__init__([])
        self._resource, self._text, self._count = resource, json.dumps(body), count

    def page(self, resource: Resource, namespace: str = "", *, token: str = "", **_selectors: str) -> Page:
        """The copy that the token names."""
        if resource != self._resource or namespace:
            return Page([])
        number = int(token or 0)
        body = json.loads(self._text)
        body["metadata"]["name"] += f"-{number}"
        return Page([body], str(number + 1) if number + 1 < self._count else "")


def _check(cluster: Cluster) -> None:
    """Run the checks of `muster check` that read what tenants write."""
    list(check_uninstall(cluster))
    list(check_policies(cluster, "muster-system"))


CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "muster-policy", "namespace": "team-a"},
    "data": {"policy": LONG * 10, "other": LONG},
}


@pytest.mark.parametrize("command", [read_status, _check], ids=["status", "check"])
@pytest.mark.parametrize(
    ("resource", "body"),
    [
        pytest.param(PODS, _member(b.labelled({"muster.dev/group": "main", **MANY})), id="labels of pods"),
        pytest.param(POD_GROUPS, b.a_pod_group(GROUP, b.annotated(MANY)), id="annotations of groups"),
        pytest.param(JOBS, b.a_job(_refused("Invalid", LONG * 20)), id="messages of owners"),
        pytest.param(JOBS, b.a_job(_refused("Invalid", WORDS)), id="words in messages of owners"),
        pytest.param(CONFIGMAPS, CONFIG_MAP, id="texts of ConfigMaps"),
    ],
)
def test_little_is_kept_of_an_object(
    command: Callable[[Cluster], object], resource: Resource, body: Any
) -> None:
    """A tenant can make hundreds of a megabyte each, which would not fit into memory together."""
    peaks = []
    for count in (2, 12):
        cluster = _Pages(resource, body, count)
        tracemalloc.start()
        command(cluster)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    few, many = peaks
    assert many - few < 500_000
