"""The files of a release on the real API server: taken by kubectl and by helm, upgraded and rolled back.

Knative's controllers are not there, so nothing becomes Ready; tests/docs/test_make_cluster.py has them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.data import EVENTING
from release.manifests import objects, overlays
from tests.cluster import kubectl
from tests.cluster.cluster import RealCluster
from tests.cluster.helm import client as helm
from tests.docs.commands import ROOT, Command, commands
from tests.support.release_files import IMAGE, NEXT, NEXT_IMAGE, ReleaseFiles

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SYSTEM = ("--namespace", "muster-system")
KINDS = (
    "brokers,triggers,apiserversources,pingsources,ksvc,serviceaccounts,roles,rolebindings,networkpolicies"
)
"""What a release has in its namespace."""


def test_a_manifest_is_installed_by_one_apply(knative_137: RealCluster, release_files: ReleaseFiles) -> None:
    """The API server keeps every field of every overlay, also where another one was installed before."""
    files = [
        (overlay, str(release_files.folder / f"muster-{overlay}.yaml")) for overlay in overlays(EVENTING)
    ]
    for overlay, file in files:
        _kubectl(knative_137, "apply", "-f", file)
        _expect(knative_137, objects(EVENTING / "overlays" / overlay, IMAGE))
    _kubectl(
        knative_137, "delete", "--ignore-not-found", *(word for _, file in files for word in ("-f", file))
    )
    assert _left(knative_137) == []


def test_helm_as_the_documents_say(knative_137: RealCluster, release_files: ReleaseFiles) -> None:
    """Installed, checked, upgraded, rolled back and uninstalled."""
    typed = [
        command
        for document in ("install.md", "uninstall.md")
        for command in commands(ROOT / "docs" / document)
        if command.program == "helm"
    ]
    assert [command.words[1] for command in typed] == ["install", "get", "upgrade", "rollback", "uninstall"]
    install, get, upgrade, rollback, uninstall = typed

    def run(command: Command) -> str:
        return helm.run(*release_files.found(command.arguments), kubeconfig=knative_137.kubeconfig)

    run(install)
    _expect(knative_137, objects(EVENTING / "overlays/cluster", IMAGE))
    _check(knative_137, get)
    run(upgrade)
    assert _images(knative_137) == {NEXT_IMAGE}
    run(rollback)
    assert _images(knative_137) == {IMAGE}
    run(uninstall)
    assert _left(knative_137) == []
    _kubectl(knative_137, "delete", "namespace", "muster-system")


def test_an_upgrade_keeps_values_and_deletes_objects_they_no_longer_select(
    knative_137: RealCluster, release_files: ReleaseFiles
) -> None:
    """From seven Services to one, to the next version, and back to the first installation."""

    def run(*arguments: str) -> None:
        helm.run(*arguments, *SYSTEM, kubeconfig=knative_137.kubeconfig)

    first, following = (str(release_files.folder / f"muster-{version}.tgz") for version in ("0.1.0", NEXT))
    run("install", "muster", first, "--create-namespace", "--set", "sweep.schedule=*/5 * * * *")
    keeping = ("upgrade", "muster", "--reset-then-reuse-values")
    run(*keeping, first, "--set", "oneService=true")
    _expect(knative_137, _sweeping(objects(EVENTING / "overlays/one-service", IMAGE)))
    assert _names(knative_137, "ksvc") == {"muster"}
    run(*keeping, following)
    _expect(knative_137, _sweeping(objects(EVENTING / "overlays/one-service", NEXT_IMAGE)))
    run("rollback", "muster", "1")
    _expect(knative_137, _sweeping(objects(EVENTING / "overlays/cluster", IMAGE)))
    assert len(_names(knative_137, "ksvc")) == 7
    run("uninstall", "muster")
    assert _left(knative_137) == []
    _kubectl(knative_137, "delete", "namespace", "muster-system")


def test_helm_makes_triggers_again_that_were_deleted(
    knative_137: RealCluster, release_files: ReleaseFiles
) -> None:
    """Step 7 of install.md deletes them before Kubernetes is upgraded."""
    chart = str(release_files.folder / "muster-0.1.0.tgz")
    arguments = (
        "upgrade",
        "--install",
        "muster",
        chart,
        *SYSTEM,
        "--create-namespace",
        "--reset-then-reuse-values",
    )
    helm.run(*arguments, "--set-string", "kubernetes=1.36", kubeconfig=knative_137.kubeconfig)
    triggers = _names(knative_137, "triggers")
    _kubectl(knative_137, "delete", "triggers", "--all", *SYSTEM)
    helm.run(*arguments, "--set-string", "kubernetes=1.37", kubeconfig=knative_137.kubeconfig)
    assert _names(knative_137, "triggers") == triggers != set()
    helm.run("uninstall", "muster", *SYSTEM, kubeconfig=knative_137.kubeconfig)
    _kubectl(knative_137, "delete", "namespace", "muster-system")


def test_two_teams_install_the_chart_in_their_namespaces(
    knative_137: RealCluster, release_files: ReleaseFiles
) -> None:
    """The first creates the admission policies, and the second its own bindings to them."""
    chart = str(release_files.folder / "muster-0.1.0.tgz")
    for team, first in (("team-a", "true"), ("team-b", "false")):
        values = ("--set", f"namespaces=Own,admissionPolicies={first}")
        namespace = ("--namespace", team, "--create-namespace")
        helm.run("install", "muster", chart, *namespace, *values, kubeconfig=knative_137.kubeconfig)
    bindings = _kubectl(knative_137, "get", "mutatingadmissionpolicybindings", "-o", "name").split()
    assert {name.rpartition("-team-")[2] for name in bindings} == {"a", "b"}
    account = "system:serviceaccount:team-b:patch-pods"
    allowed = [
        kubectl.call(
            "auth", "can-i", "list", "pods", "-n", team, f"--as={account}", kubeconfig=knative_137.kubeconfig
        )
        for team in ("team-a", "team-b")
    ]
    assert [answer.stdout.strip() for answer in allowed] == ["no", "yes"]
    for team in ("team-a", "team-b"):
        helm.run("uninstall", "muster", "--namespace", team, kubeconfig=knative_137.kubeconfig)
    assert _left(knative_137) == []
    _kubectl(knative_137, "delete", "namespace", "team-b")


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


def _sweeping(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same objects, with sweeps every five minutes."""
    for manifest in manifests:
        if manifest["kind"] == "PingSource":
            manifest["spec"]["schedule"] = "*/5 * * * *"
    return manifests


def _check(cluster: RealCluster, command: Command) -> None:
    """`helm get manifest ... | muster check --overlay -` finds nothing but that Knative is not there."""
    split = command.words.index("|")
    manifest = helm.run(*command.words[1:split], kubeconfig=cluster.kubeconfig)
    program, *arguments = command.words[split + 1 :]
    muster = [
        str(Path(sys.executable).with_name(program)),
        *arguments,
        "--kubeconfig",
        str(cluster.kubeconfig),
    ]
    checked = subprocess.run(muster, input=manifest, capture_output=True, text=True, check=False)
    assert checked.stderr == ""
    assert "permissions of patch-pods: all" in checked.stdout
    failed = [line for line in checked.stdout.splitlines() if line.startswith("FAIL")]
    assert [line for line in failed if "eady" not in line] == [], checked.stdout


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
