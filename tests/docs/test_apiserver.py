"""docs/apiserver.md, followed from the top: the server starts as it says, and kubectl's commands work."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from muster.data import EVENTING
from muster.simulator.apiserver.http.routes import CONTAINER_SUBRESOURCES
from muster.simulator.apiserver.kinds import CORE
from tests.cluster import kubectl
from tests.cluster.api import KubernetesApi
from tests.contract.case import TABLE
from tests.docs.commands import ROOT, commands
from tests.suites import SUITES

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


def test_every_command_is_run_here() -> None:
    """A program that no test below knows would be typed by a reader first."""
    assert {command.program for command in COMMANDS} == {"muster", "kubectl", "export", "python"}
    (suites,) = (command.words for command in COMMANDS if command.program == "python")
    assert suites == ("python", "-m", "tests.suites", *SUITES)


@pytest.mark.thorough
def test_kubectl_shows_node_and_ip(started: Started) -> None:
    """The table that `kubectl get pods -o wide` prints."""
    answer = started.api.request("GET", "/api/v1/namespaces/team-a/pods", accept=TABLE)
    names = [column["name"] for column in answer.body["columnDefinitions"]]
    (row,) = (dict(zip(names, row["cells"], strict=True)) for row in answer.body["rows"])
    assert (row["Node"], row["IP"], row["Status"]) == ("node-1", "10.0.0.7", "Running")


def test_loaded_policies_are_in_effect(started: Started) -> None:
    """The Job of objects.yaml is labelled by the policy of eventing/admission."""
    job = started.api.must("GET", "/apis/batch/v1/namespaces/team-a/jobs/sweep")
    assert job["spec"]["template"]["metadata"]["labels"]["muster.dev/group"] == "main"


@pytest.mark.thorough
def test_the_error_of_the_page(tmp_path: Path) -> None:
    """A manifest that is refused ends the command with this line."""
    (line,) = re.findall(r"^muster: jobs\.yaml.*$", PAGE.read_text(), re.MULTILINE)
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}}
    text = yaml.safe_dump(config_map) + "---\n" + yaml.safe_dump(job | {"spec": {"template": template}})
    (tmp_path / "jobs.yaml").write_text(text)
    words = [sys.executable, "-m", "muster", "apiserver", "--load", "jobs.yaml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{line}\n")


def test_every_kind_is_named() -> None:
    """The page lists the built-in kinds."""
    text = PAGE.read_text()
    for kind in CORE:
        assert kind.kind.removesuffix("Binding") in text
    assert all(f"`{name}`" in text or name in {"log", "portforward", "proxy"} for name in _subresources())


def _subresources() -> set[str]:
    return set().union(*CONTAINER_SUBRESOURCES.values())


@pytest.mark.thorough
def test_the_rates_are_of_these_versions() -> None:
    """The table has a row for each suite, with the version that `tests.suites` runs."""
    text = PAGE.read_text()
    assert all(f"| {name} {suite.version} |" in text for name, suite in SUITES.items())


@pytest.mark.real
def test_kubectl(started: Started) -> None:
    """Every command of the page works with the real kubectl, in order."""
    for command in KUBECTL:
        kubectl.run(*command.arguments, kubeconfig=started.kubeconfig)


@pytest.mark.real
def test_kubectl_gets_the_reason_for_unsupported_requests(started: Started) -> None:
    """Logs, exec and the like end with the reason, not with a guess."""
    for words in (["logs", "server"], ["exec", "server", "--", "ls"], ["attach", "server"]):
        done = kubectl.call("-n", "team-a", *words, kubeconfig=started.kubeconfig)
        assert done.returncode
        assert "runs no containers" in done.stderr
