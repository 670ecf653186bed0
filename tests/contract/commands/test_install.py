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


def _expect_fit(cluster: RealCluster, arguments: list[str]) -> None:
    output = CliRunner().invoke(main, [*arguments, "--kubeconfig", str(cluster.kubeconfig)]).output
    failed = [line for line in output.splitlines() if line.startswith("FAIL")]
    # Without Knative's controllers nothing is Ready, and that is all there is to say.
    assert [line for line in failed if "eady" not in line] == [], output


def _kubectl(cluster: RealCluster, *arguments: str) -> str:
    return kubectl.run(*arguments, kubeconfig=cluster.kubeconfig)
