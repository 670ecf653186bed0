"""docs/apiserver.md, followed from the top: the server starts as it says, and kubectl's commands work."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from muster.data import EVENTING
from tests.cluster import kubectl
from tests.cluster.api import KubernetesApi
from tests.docs.commands import ROOT, commands

PAGE = ROOT / "docs/apiserver.md"
COMMANDS = commands(PAGE)
KUBECTL = [command for command in COMMANDS if command.program == "kubectl"]


@dataclass(frozen=True)
class Started:
    """The server of the page.

    Attributes:
        kubeconfig: the file that the command wrote.
        api: a client.
    """

    kubeconfig: Path
    api: KubernetesApi


@pytest.fixture(name="started", scope="module")
def _started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """The command of the page, in a folder with its objects.yaml; the port is any free one."""
    folder = tmp_path_factory.mktemp("apiserver")
    (manifests,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (folder / "objects.yaml").write_text(manifests)
    (folder / "eventing").symlink_to(EVENTING)
    (command,) = (command for command in COMMANDS if command.program == "muster")
    words = [word.replace("8001", "0") for word in command.arguments]
    with subprocess.Popen(
        [sys.executable, "-m", "muster", *words], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield Started(folder / "kubeconfig", KubernetesApi(process.stdout.readline().strip()))
        process.terminate()
        assert process.wait(10) == 0


def test_loaded_policies_are_in_effect(started: Started) -> None:
    """The Job of objects.yaml is labelled by the policy of eventing/admission."""
    job = started.api.must("GET", "/apis/batch/v1/namespaces/team-a/jobs/sweep")
    assert job["spec"]["template"]["metadata"]["labels"]["muster.dev/group"] == "main"


@pytest.mark.real
def test_kubectl(started: Started) -> None:
    """Every command of the page works with the real kubectl, in order."""
    objects = str(started.kubeconfig.with_name("objects.yaml"))
    for command in KUBECTL:
        words = [objects if word == "objects.yaml" else word for word in command.arguments]
        kubectl.run(*words, kubeconfig=started.kubeconfig)
