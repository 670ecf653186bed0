"""`muster check --uninstall`: what would be stranded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.cluster.http.client import Client
from muster.cluster.observe.snapshot import Snapshot
from muster.operator.check import Level, check_uninstall
from muster.simulator.apiserver import ApiServer
from tests.support import builders as b
from tests.unit.cli.check.test_check import ACCOUNTS, LIMITS, POLICIES, lines
from tests.unit.cli.conftest import Muster

GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"


def a_member(*modifiers: b.Modifier) -> Any:
    """A pod that waits with Muster's gate."""
    return b.a_pod(b.a_job(), 0, b.stamped(GROUP), b.gated(GATE), *modifiers)


def without_label(pod: Any) -> None:
    """Remove the group label."""
    del pod["metadata"]["labels"]["muster.dev/group"]


@pytest.mark.parametrize(
    ("objects", "place", "stranded"),
    [
        pytest.param([b.a_namespace()], 0, "team-a", id="a namespace is opted in"),
        pytest.param(POLICIES[:2], 1, "muster-", id="a policy is there"),
        pytest.param([b.a_pod_group(), a_member()], 2, "team-a/llama-0", id="a pod has our gate"),
        pytest.param(
            [a_member(without_label)],
            2,
            "team-a/llama-0",
            id="a pod has our gate, without our label",
        ),
        pytest.param(
            [a_member(b.with_spec(schedulingGates=[]))], 3, "team-a/llama-0", id="a pod waits for a group"
        ),
    ],
)
def test_not_safe_to_uninstall(objects: list[Any], place: int, stranded: str) -> None:
    """What would be stranded is named in its place: label, policies, gated pods, pods without a group."""
    found = list(check_uninstall(Snapshot(objects)))
    assert [number for number, finding in enumerate(found) if finding.level is Level.FAIL] == [place]
    assert stranded in found[place].message


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([], id="nothing there"),
        pytest.param([b.a_namespace(enabled=False)], id="no namespace opted in"),
        pytest.param([b.a_pod_group(), a_member(b.bound)], id="a gang that runs goes on"),
        pytest.param([a_member(b.bound)], id="a pod that runs needs its group no more"),
        pytest.param([a_member(b.succeeded)], id="what has finished waits for nothing"),
        pytest.param([b.a_pod_group(), a_member(b.gated("other"))], id="other people's gates are theirs"),
    ],
)
def test_safe_to_uninstall(objects: list[Any]) -> None:
    """Nothing would be stranded."""
    assert {finding.level for finding in check_uninstall(Snapshot(objects))} == {Level.OK}


def test_policies_of_accounts_may_stay() -> None:
    """They hold no pod back, and limit the functions until these are deleted."""
    *_, about_policies = check_uninstall(Snapshot(LIMITS))
    assert (about_policies.about, about_policies.level) == (ACCOUNTS, Level.OK)


def test_uninstall_exits_with_1_until_it_is_safe(muster: Muster, tmp_path: Path) -> None:
    """As a script would wait for it."""
    with ApiServer() as server:
        server.load([b.a_namespace(enabled=False), a_member()])
        (tmp_path / "kubeconfig").write_text(server.kubeconfig())
        check = ("check", "--uninstall", "--kubeconfig", str(tmp_path / "kubeconfig"))
        assert muster(*check).exit_code == 1
        Client.for_server(server.url).raw("DELETE", "/api/v1/namespaces/team-a/pods/llama-0")
        result = muster(*check)
    assert (result.exit_code, set(lines(result.stdout).values())) == (0, {"ok"})
