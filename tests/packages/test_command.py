"""`muster run` and `muster apiserver` as processes, kubectl against them, and the wheel alone."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.installed import ROOT, Installed
from tests.support.processes import PATIENCE, muster, running


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
