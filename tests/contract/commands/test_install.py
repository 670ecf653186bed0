"""install.md, operations.md and uninstall.md by hand on the real API server, with the real kubectl.

Knative's controllers are not there, so nothing becomes Ready; what is shown is that every object is taken,
found by `muster check`, and taken away again.
"""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from muster.cli import main
from tests.cluster import kubectl
from tests.cluster.cluster import RealCluster
from tests.docs.commands import ROOT, commands
from tests.support.release_files import ReleaseFiles

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


def test_install_and_uninstall_as_the_documents_say(
    knative_137: RealCluster, release_files: ReleaseFiles
) -> None:
    """All commands of the documents but helm's, in their order; afterwards nothing of Muster's is left."""
    for document in ("install.md", "operations.md", "uninstall.md"):
        for command in commands(ROOT / "docs" / document):
            if command.piped:
                continue  # no groups here; tests/e2e/clusters/test_kubernetes_136_upgrade.py types it
            if command.program == "kubectl":
                printed = _kubectl(knative_137, *release_files.found(command.arguments))
                # What was installed a moment ago is what an upgrade to the same version would bring.
                assert command.arguments[0] != "diff" or printed == ""
            elif command.words[:2] == ("muster", "check"):
                _expect_fit(knative_137, command.arguments)
    policies = "mutatingadmissionpolicies,mutatingadmissionpolicybindings,validatingadmissionpolicies"
    left = _kubectl(knative_137, "get", f"{policies},clusterroles,triggers,ksvc", "-A", "-o", "name")
    assert "muster" not in left


def test_the_one_namespace_overlay_can_be_applied(knative_137: RealCluster) -> None:
    """Roles, bindings and all, in a namespace that is there already."""
    overlay = "eventing/overlays/one-namespace"
    _kubectl(knative_137, "apply", "-k", overlay)
    account = "system:serviceaccount:team-a:patch-pods"
    may = {
        question: _may(knative_137, account, *question)
        for question in (
            # A Role covers the namespace it stands in, although namespaces are in no namespace.
            ("get", "namespaces/team-a", "-n", "team-a"),
            ("list", "pods", "-n", "team-a"),
            ("get", "clustertrainingruntimes.trainer.kubeflow.org"),
            ("list", "priorityclasses.scheduling.k8s.io"),
            ("get", "namespaces/kube-system", "-n", "kube-system"),
            ("list", "pods", "-n", "kube-system"),
            ("list", "pods", "-A"),
        )
    }
    assert list(may.values()) == ["yes", "yes", "yes", "yes", "no", "no", "no"], may
    _kubectl(knative_137, "delete", "-k", overlay)


def _expect_fit(cluster: RealCluster, arguments: list[str]) -> None:
    output = CliRunner().invoke(main, [*arguments, "--kubeconfig", str(cluster.kubeconfig)]).output
    failed = [line for line in output.splitlines() if line.startswith("FAIL")]
    # Without Knative's controllers nothing is Ready, and that is all there is to say.
    assert [line for line in failed if "eady" not in line] == [], output


def _may(cluster: RealCluster, account: str, *question: str) -> str:
    """The API server's answer, yes or no; kubectl exits with 1 for the latter."""
    asks = ("auth", "can-i", *question, f"--as={account}", "--as-group=system:serviceaccounts:team-a")
    return kubectl.call(*asks, kubeconfig=cluster.kubeconfig).stdout.strip()


def _kubectl(cluster: RealCluster, *arguments: str) -> str:
    return kubectl.run(*arguments, kubeconfig=cluster.kubeconfig)
