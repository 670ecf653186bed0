"""The files of a release on the real API server: taken by kubectl and by helm, upgraded and rolled back.

Knative's controllers are not there, so nothing becomes Ready; tests/docs/test_make_cluster.py has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import yaml

from muster.simulator.overlays import load
from release.chart import OVERLAYS
from tests.cluster import kubectl
from tests.cluster.cluster import RealCluster
from tests.docs.commands import ROOT, Command, commands
from tests.support.release_files import IMAGE, NEXT_IMAGE, ReleaseFiles

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SYSTEM = ("--namespace", "muster-system")
KINDS = (
    "brokers,triggers,apiserversources,pingsources,ksvc,serviceaccounts,roles,rolebindings,networkpolicies"
)
"""What a release has in its namespace."""


def test_a_manifest_is_installed_by_one_apply(knative_137: RealCluster, release_files: ReleaseFiles) -> None:
    """The API server keeps every field of every overlay, also where another one was installed before."""
    files = [release_files.folder / f"muster-{overlay}.yaml" for overlay in OVERLAYS]
    for file in files:
        _kubectl(knative_137, "apply", "-f", str(file))
        _expect(knative_137, load(file))
    named = (word for file in files for word in ("-f", str(file)))
    _kubectl(knative_137, "delete", "--ignore-not-found", *named)
    assert _left(knative_137) == []


def test_helm_as_the_documents_say(knative_137: RealCluster, release_files: ReleaseFiles) -> None:
    """Installed, checked, upgraded, rolled back and uninstalled."""
    typed = [
        command
        for document in ("install.md", "uninstall.md")
        for command in commands(ROOT / "docs" / document)
        if command.program == "helm"
    ]
    assert [command.words[1] for command in typed] == ["install", "upgrade", "rollback", "uninstall"]
    install, upgrade, rollback, uninstall = typed

    def run(command: Command) -> str:
        return kubectl.helm(*release_files.found(command.arguments), kubeconfig=knative_137.kubeconfig)

    run(install)
    _expect(knative_137, load(release_files.folder / "muster-cluster.yaml"))
    run(upgrade)
    assert _images(knative_137) == {NEXT_IMAGE}
    run(rollback)
    assert _images(knative_137) == {IMAGE}
    run(uninstall)
    assert _left(knative_137) == []
    _kubectl(knative_137, "delete", "namespace", "muster-system")


def _expect(cluster: RealCluster, expected: Iterable[dict[str, Any]]) -> None:
    """Every object is stored with every field; the API server adds others."""
    listed = [manifest for manifest in expected if manifest["kind"] != "Namespace"]
    stream = yaml.safe_dump_all(listed)
    stored = json.loads(
        kubectl.run("get", "-f", "-", "-o", "json", kubeconfig=cluster.kubeconfig, given=stream)
    )
    differing = [
        f"{manifest['kind']}/{manifest['metadata']['name']}: {difference}"
        for manifest, live in zip(listed, stored["items"], strict=True)
        for difference in _differences(live, manifest)
    ]
    assert differing == []


def _differences(live: Any, expected: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of expected fields that are missing or have other values."""
    if isinstance(expected, dict) and isinstance(live, dict):
        for key, value in expected.items():
            yield from _differences(live.get(key), value, f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(live, list) and len(live) == len(expected):
        for number, (stored, value) in enumerate(zip(live, expected, strict=True)):
            yield from _differences(stored, value, f"{path}[{number}]")
    elif live != expected:
        yield f"{path}: {live} in place of {expected}"


def _images(cluster: RealCluster) -> set[str]:
    services = json.loads(_kubectl(cluster, "get", "ksvc", *SYSTEM, "-o", "json"))["items"]
    return {service["spec"]["template"]["spec"]["containers"][0]["image"] for service in services}


def _names(cluster: RealCluster, kind: str) -> set[str]:
    return {name.partition("/")[2] for name in _kubectl(cluster, "get", kind, *SYSTEM, "-o", "name").split()}


def _left(cluster: RealCluster) -> list[str]:
    """Objects of Muster's in any namespace, and in none."""
    policies = "mutatingadmissionpolicies,mutatingadmissionpolicybindings"
    limits = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    kinds = f"{KINDS},{policies},{limits},clusterroles,clusterrolebindings"
    lines = _kubectl(cluster, "get", kinds, "-A", "-o", "name").split()
    return [line for line in lines if "muster" in line or "patch-pods" in line]


def _kubectl(cluster: RealCluster, *arguments: str) -> str:
    return kubectl.run(*arguments, kubeconfig=cluster.kubeconfig)
