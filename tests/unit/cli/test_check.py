"""`muster check`: findings about the cluster, the installation, and before an uninstall."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.cli.check import Finding, Level, check_cluster, check_installation, check_uninstall
from muster.cluster.errors import TooManyRequests
from muster.cluster.http.client import Client
from muster.cluster.observe.snapshot import Snapshot
from muster.data import EVENTING
from muster.simulator.apiserver import ApiServer, Gates, resource_definitions
from muster.simulator.overlays import load
from tests.support import builders as b
from tests.unit.cli.conftest import Filed, Muster, a_config_map

POLICIES = load(EVENTING / "admission")
GROUP = "llama-main-33333333"
GATE = "muster.dev/pod-group"

Check = Callable[..., tuple[int, dict[str, str]]]


def findings(iterator: Iterator[Finding]) -> dict[str, tuple[Level, str]]:
    """Findings by what they are about."""
    return {finding.about: (finding.level, finding.message) for finding in iterator}


@pytest.fixture
def check(muster: Muster, filed: Filed) -> Check:
    """`muster check` of an API server: the exit status, and the level of each line by what it is about."""

    def run(server: ApiServer, *options: str) -> tuple[int, dict[str, str]]:
        result = muster("check", *options, "--kubeconfig", filed("kubeconfig", server.kubeconfig()))
        columns = [line.split(maxsplit=1) for line in result.stdout.splitlines()]
        return result.exit_code, {rest.partition(": ")[0]: level for level, rest in columns}

    return run


SERVED = ("scheduling API", "CompositePodGroup", "stored groups", "JobSet")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {**dict.fromkeys(SERVED, "ok"), "admission policies": "ok", "Knative Serving": "FAIL"}),
        ({"gates": Gates(generic_workload=False)}, {"scheduling API": "FAIL", "admission policies": "ok"}),
        ({"release": "1.36"}, {"scheduling API": "ok", "minCount": "warn", "CompositePodGroup": "warn"}),
    ],
)
def test_versions_and_gates_of_the_cluster_are_reported(
    check: Check, options: dict[str, Any], expected: dict[str, str]
) -> None:
    """Each by what the API server shows of it."""
    with ApiServer(**options) as server:
        server.load(resource_definitions())
        status, levels = check(server, "--before")
    assert status == 1
    assert expected.items() <= levels.items()


def test_groups_that_cannot_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What 1.36 stored has to go before the upgrade to 1.37; the API server's message shows it."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise TooManyRequests('no kind "PodGroup" is registered for version "x/v1alpha2"')

    monkeypatch.setattr(Client, "list", refuse)
    with ApiServer() as server:
        found = findings(check_cluster(Client.for_server(server.url)))
    assert found["stored groups"][0] == Level.FAIL
    assert "before the upgrade delete every Workload" in found["stored groups"][1]


def test_the_installation() -> None:
    """Policies with their bindings, a namespace that is opted in, and the administrator's policy."""
    policy = a_config_map("muster-system", policy="workload: {onScale: No}", locked="{onFailure: Hold}")
    with ApiServer() as server:
        client = Client.for_server(server.url)
        nothing = findings(check_installation(client))
        server.load([*POLICIES, policy, b.a_namespace()])
        everything = findings(check_installation(client))
    kinds = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")
    assert Path(shlex.split(nothing[kinds[0]][1])[-1]).is_dir()
    label, where = "label muster.dev/gang-jobs", "ConfigMap muster-system/muster-policy, key"
    levels = [{about: level for about, (level, _) in found.items()} for found in (nothing, everything)]
    assert levels == [
        {**dict.fromkeys(kinds, "FAIL"), label: "warn"},
        {**dict.fromkeys([*kinds, label, f"{where} locked"], "ok"), f"{where} policy": "FAIL"},
    ]


def a_member(*modifiers: b.Modifier) -> Any:
    """A pod that waits with Muster's gate."""
    return b.a_pod(b.a_job(), 0, b.stamped(GROUP), b.gated(GATE), *modifiers)


UNLABELLED = a_member()
del UNLABELLED["metadata"]["labels"]["muster.dev/group"]


@pytest.mark.parametrize(
    ("objects", "place", "stranded"),
    [
        ([b.a_namespace()], 0, "team-a"),
        (POLICIES[:2], 1, "muster-"),
        ([one for one in POLICIES if one["kind"].startswith("Validating")], 1, "muster-check-gangs"),
        ([b.a_pod_group(), a_member()], 2, "team-a/llama-0"),
        ([UNLABELLED], 2, "team-a/llama-0"),
        ([a_member(b.with_spec(schedulingGates=[]))], 3, "team-a/llama-0"),
        ([b.a_namespace(enabled=False)], None, ""),
        ([b.a_pod_group(), a_member(b.bound)], None, ""),
        ([a_member(b.succeeded)], None, ""),
        ([b.a_pod_group(), a_member(b.gated("other"))], None, ""),
    ],
)
def test_what_an_uninstall_would_strand(objects: list[Any], place: int | None, stranded: str) -> None:
    """It is named in its place: label, policies, gated pods, pods without a group."""
    found = list(check_uninstall(Snapshot(objects)))
    failed = [number for number, finding in enumerate(found) if finding.level is Level.FAIL]
    assert failed == ([] if place is None else [place])
    assert stranded in found[place or 0].message
