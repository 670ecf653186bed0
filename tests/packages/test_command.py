"""`muster run` and `muster apiserver` as processes, kubectl against them, and the wheel alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.installed import ROOT, Installed
from tests.support.processes import PATIENCE, muster, running, url_in


def line_of(text: str, part: str) -> str:
    """Return the first line that contains `part`, without blanks and tree lines."""
    return next(line for line in text.splitlines() if part in line).strip(" ├└│─")


def test_all_stories_fit_on_a_page() -> None:
    """The tree with the nodes, how many checks passed, and who wrote how often."""
    ended = muster("run")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(ended.stdout.splitlines()) < 50
    assert ended.stdout.endswith("5 of 5 stories passed\n")
    assert re.fullmatch(
        r"gang trainer 3/3 on node-\d, node-\d, node-\d ✔", line_of(ended.stdout, "gang trainer 3/3")
    )
    assert "create_workload 1" in line_of(ended.stdout, "writes: ")


def test_run_with_processes_ends_well_too() -> None:
    """With each function as a process the story passes as well; a line for each activity and check."""
    ended = muster("run", "--story", "indexed-job", "--verbose")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "main" in line_of(ended.stdout, "4/4")
    assert re.search(r"✔ create_workload +Job indexed-job/\w+ add", ended.stdout)


@pytest.fixture(scope="module")
def kept() -> Iterator[dict[str, str]]:
    """The environment of kubectl while `muster run --keep` runs; at the end it must exit with 0."""
    with running("run", "--keep", "--story", "torch") as process:
        path = process.line("export KUBECONFIG=").removeprefix("export KUBECONFIG=")
        yield {**os.environ, "KUBECONFIG": path}
        assert process.end() == 0
        assert not Path(path).exists()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_against_a_cluster_that_is_kept(kept: dict[str, str]) -> None:
    """Objects are listed, described, applied as gangs, and deleted with their groups."""

    def kubectl(*arguments: str, given: str = "") -> str:
        command = ["kubectl", "-n", "torch", *arguments]
        ended = subprocess.run(
            command, env=kept, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    listed = kubectl("get", "trainjobs,workloads,podgroups,pods", "-o", "name")
    assert "workload.scheduling.k8s.io/llama" in listed
    assert listed.count("pod/llama-node-0-") == 3
    assert "llama" in kubectl("get", "trainjobs")
    described = kubectl("describe", "trainjob", "llama")
    assert re.search(r"Reason: +Scheduled\n +Status: +True\n +Type: +PodGroupsScheduled\n", described)
    job = json.dumps(a_job("applied"))
    assert "created" in kubectl("apply", "-f", "-", given=job)
    kubectl("wait", "job/applied", "--for=condition=muster.dev/PodGroupsScheduled", "--timeout=20s")
    assert "unchanged" in kubectl("apply", "-f", "-", given=job)
    (group,) = [
        name for name in kubectl("get", "podgroups", "-o", "name").split() if "/applied-main-" in name
    ]
    kubectl("delete", "job", "applied", "--cascade=foreground")
    kubectl("wait", group, "--for=delete", "--timeout=20s")


def a_job(name: str) -> dict[str, Any]:
    """An Indexed Job of two pods."""
    template = {
        "metadata": {"labels": {"muster.dev/group": "main"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": template},
    }


def test_a_cluster_of_ones_own_is_worked_on_until_a_signal(tmp_path: Path) -> None:
    """With a kubeconfig no server and no story is started; the functions work on that cluster."""
    path = tmp_path / "kubeconfig"
    with running("apiserver", "--port", "0", "--kubeconfig-out", str(path)) as server:
        url = url_in(server.line("http://127.0.0.1:"))
        with running("run", "--kubeconfig", str(path)) as process:
            process.line(url)
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
            post(f"{url}/api/v1/namespaces", namespace)
            post(f"{url}/apis/batch/v1/namespaces/team/jobs", a_job("marked"))
            assert re.search(r"create_workload +Job team/marked add", process.line("Job team/marked"))
            assert process.end(signal.SIGTERM) == 0
        assert server.end(signal.SIGINT) == 0


def post(url: str, obj: dict[str, Any]) -> None:
    """Create an object as a client."""
    request = urllib.request.Request(  # noqa: S310 - loopback
        url, data=json.dumps(obj).encode(), headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - likewise
        assert answer.status == 201


def test_the_wheel_installs_one_package_that_works_alone(
    wheel: Path, installed: Installed, tmp_path: Path
) -> None:
    """The steps, the manifests and the simulators come out of the package."""
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"muster"}
    assert not [name for name in names if "__pycache__" in name]
    for command in (
        ["explain", str(ROOT / "eventing/examples/racks.yaml")],
        ["run", "--story", "indexed-job"],
    ):
        ran = installed.run("muster", *command, cwd=tmp_path)
        assert ran.returncode == 0, ran.stdout
