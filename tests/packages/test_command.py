"""`muster run` as a process, and kubectl against its cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from muster.cli import main
from muster.local import comparison
from tests.support.processes import MUSTER, PATIENCE, running


def test_two_jobs_without_gangs_and_with_them() -> None:
    """Each is placed in part; then one as a whole, and the other one as soon as it fits.

    A locale without ticks gets none.
    """
    locale = {name: value for name, value in os.environ.items() if name != "PYTHONUTF8"} | {"LC_ALL": "C"}
    ran = subprocess.run(
        [*MUSTER, "run"], env=locale, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    plain, _, gangs = ran.stdout.partition("\nThe same Jobs with Muster\n")
    assert plain.count(" 27 of 30 pods are placed: waits for 3 more\n") == 2, ran.stdout
    placed = re.findall(r" (\d+) of 30 pods are placed: (\w+)", gangs)
    assert placed == [("30", "runs"), ("0", "waits"), ("30", "runs")]
    assert ": waits: 24 of 30 pods would fit" in gangs
    assert "\nx Every GPU is taken" in plain
    assert "\n+ A Job holds all of its GPUs or none" in gangs
    assert ran.stdout.isascii()
    assert (ran.returncode, ran.stderr) == (0, "")


def test_what_is_not_shown_in_time_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is said to have happened that did not."""
    monkeypatch.setattr(comparison, "TIMEOUT_SECONDS", 0.0)
    ran = CliRunner().invoke(main, ["run"])
    assert (ran.exit_code, ran.output.count("took too long")) == (1, 2)
    assert "Every GPU" not in ran.output


@pytest.fixture(scope="module")
def kept() -> Iterator[dict[str, str]]:
    """The environment of kubectl while `muster run --keep` runs; at the end it must exit with 0.

    The story that it shows has the tree with the nodes, and who wrote how often.
    """
    with running("run", "--keep", "--story", "torch") as process:
        gang = process.line("gang trainer").strip(" ├└│─")
        assert re.fullmatch(r"gang trainer 3/3 on node-\d, node-\d, node-\d ✔", gang)
        assert "create_workload 1" in process.line("writes: ")
        process.line("1 of 1 story passed")
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
