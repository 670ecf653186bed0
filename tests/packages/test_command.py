"""`muster run` and `muster apiserver` as processes, and kubectl against them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import MUSTER, PATIENCE, muster, running, url_in


def line_of(text: str, part: str) -> str:
    """Return the first line that contains `part`, without blanks and tree lines."""
    return next(line for line in text.splitlines() if part in line).strip(" ├└│─")


def test_run_plays_a_story_and_succeeds() -> None:
    """It prints the tree with the nodes, how many checks passed, and who wrote how often."""
    ended = muster("run", "--story", "torch")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "\x1b[" not in ended.stdout
    gang, summary = line_of(ended.stdout, "3/3"), ended.stdout.splitlines()[-1]
    assert re.fullmatch(r"gang trainer 3/3 on node-\d, node-\d, node-\d ✔", gang)
    assert re.findall(r"\d+", summary) == ["1", "1"]
    writes = line_of(ended.stdout, "writes: ")
    for function in ("create_workload 1", "create_pod_groups 1", "patch_pods ", "emit_conditions "):
        assert function in writes
    assert len(ended.stdout.splitlines()) < 10


def test_all_stories_fit_on_a_page() -> None:
    """Their reports are what a person reads, not a log."""
    ended = muster("run")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(ended.stdout.splitlines()) < 50
    assert ended.stdout.endswith("5 of 5 stories passed\n")


def test_run_prints_everything_if_it_is_asked_to() -> None:
    """A line for each activity as it happens, and for each check.

    The event of the owner's status may be in work before that of its creation: a trigger has several workers.
    """
    ended = muster("run", "--story", "torch", "--verbose")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    assert re.search(
        r"\ds ✔ create_workload +(?:JobSet|TrainJob) torch/llama (?:add|update) +WorkloadCreated",
        ended.stdout,
    )
    checks = [line for line in lines if line.startswith("  ✔ ")]
    assert len(checks) == 8


@pytest.mark.parametrize("verbose", [[], ["--verbose"]])
def test_a_reader_that_goes_ends_it_without_a_trace(verbose: list[str]) -> None:
    """As with `muster run | head -1`."""
    with subprocess.Popen(
        [*MUSTER, "run", *verbose], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "torch" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE) in {1, 130}
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_run_with_processes_ends_well_too() -> None:
    """With each function as a process the story passes as well."""
    ended = muster("run", "--processes", "--story", "indexed-job")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "main" in line_of(ended.stdout, "4/4")


def test_run_fails_with_the_timeline_when_a_story_does_not_hold() -> None:
    """Without patch_pods' writes no gate is lifted: exit status 1, and the timeline is printed."""
    broken = (
        "import dataclasses\n"
        "from muster.runtime import steps\n"
        "from muster.policy.model import NoOp\n"
        "from muster.policy.reasons import Reason\n"
        "load_step = steps.load_step\n"
        "def broken(path):\n"
        "    step = load_step(path)\n"
        "    idle = lambda inputs, now: NoOp(Reason.UP_TO_DATE)\n"
        "    return dataclasses.replace(step, plan=idle) if step.name == 'patch_pods' else step\n"
        "steps.load_step = broken\n"
        "from muster.local.stories import story\n"
        "story.StoryRun.until.__defaults__ = (2.0,)\n"
        "from muster.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", broken, "run", "--story", "torch"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "  ✘ " in ended.stdout
    gang = line_of(ended.stdout, "0/3")
    summary = ended.stdout.splitlines()[-1]
    assert re.search(r"added +PodGroup llama-trainer-", ended.stdout)
    assert re.findall(r"\d+", gang) == ["0", "3", "3"]
    assert re.findall(r"\d+", summary) == ["0", "1"]


@pytest.fixture(scope="module")
def kept() -> Iterator[dict[str, str]]:
    """The environment of kubectl while `muster run --keep` runs; at the end it must exit with 0."""
    with running("run", "--keep", "--story", "torch") as process:
        path = process.line("export KUBECONFIG=").removeprefix("export KUBECONFIG=")
        yield {**os.environ, "KUBECONFIG": path}
        assert process.end() == 0
        assert not Path(path).exists()


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
class TestKubectl:
    """Debian's kubectl against `muster run --keep`."""

    @staticmethod
    def kubectl(kept: dict[str, str], *arguments: str, given: str = "", fails: bool = False) -> str:
        """Return kubectl's standard output, or its standard error if it must fail."""
        ended = subprocess.run(
            ["kubectl", *arguments],
            env=kept,
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (ended.returncode != 0) == fails, ended.stdout + ended.stderr
        return ended.stderr if fails else ended.stdout

    def test_kubectl_get_lists_workloads_and_pod_groups(self, kept: dict[str, str]) -> None:
        """Workload, PodGroup and pods are listed like other objects."""
        listed = self.kubectl(kept, "get", "trainjobs,workloads,podgroups,pods", "-n", "torch", "-o", "name")
        assert "workload.scheduling.k8s.io/llama" in listed
        assert "podgroup.scheduling.k8s.io/llama-trainer-" in listed
        assert listed.count("pod/llama-node-0-") == 3
        table = self.kubectl(kept, "get", "pods", "-n", "torch")
        assert table.count("Running") == 3

    def test_get_shows_tables_of_custom_resources(self, kept: dict[str, str]) -> None:
        """The columns of the Trainer's CRD are filled; State shows the last condition."""
        header, row = self.kubectl(kept, "get", "trainjobs", "-n", "torch").splitlines()
        assert header.split() == ["NAME", "STATE", "AGE"]
        assert row.split()[:2] == ["llama", "PodGroupsScheduled"]

    def test_describe_shows_the_conditions(self, kept: dict[str, str]) -> None:
        """`kubectl describe` shows the owner's conditions."""
        described = self.kubectl(kept, "describe", "trainjob", "llama", "-n", "torch")
        assert re.search(r"Reason: +Scheduled\n +Status: +True\n +Type: +PodGroupsScheduled\n", described)

    def test_apply_makes_a_gang_of_a_job(self, kept: dict[str, str]) -> None:
        """An applied Job is grouped, and applying it again changes nothing."""
        job = json.dumps(a_job("applied"))
        assert "created" in self.kubectl(kept, "apply", "-n", "torch", "-f", "-", given=job)
        self.kubectl(
            kept,
            "wait",
            "job/applied",
            "-n",
            "torch",
            "--for=condition=muster.dev/PodGroupsScheduled",
            "--timeout=20s",
        )
        assert "unchanged" in self.kubectl(kept, "apply", "-n", "torch", "-f", "-", given=job)

    def test_the_group_of_a_gated_pod_cannot_be_patched(self, kept: dict[str, str]) -> None:
        """A change of a pod's schedulingGroup is refused with the API server's message."""
        job = a_job("held")
        job["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/hold"}]
        self.kubectl(kept, "apply", "-n", "torch", "-f", "-", given=json.dumps(job))
        pods = ["get", "pods", "-n", "torch", "-l", "job-name=held", "-o", "name"]
        self.kubectl(
            kept, "wait", "job/held", "-n", "torch", "--for=jsonpath={.status.active}=2", "--timeout=20s"
        )
        pod = self.kubectl(kept, *pods).split()[0]
        patch = '{"spec":{"schedulingGroup":{"podGroupName":"another"}}}'
        output = self.kubectl(kept, "patch", pod, "-n", "torch", "--type=merge", "-p", patch, fails=True)
        assert "spec: Forbidden: pod updates may not change fields other than" in output
        assert "another" in output

    def test_delete_takes_the_groups_along(self, kept: dict[str, str]) -> None:
        """Objects that Muster created are owned by the Job and deleted with it."""
        self.kubectl(kept, "apply", "-n", "torch", "-f", "-", given=json.dumps(a_job("gone")))
        made = "--for=condition=muster.dev/PodGroupsReady"
        self.kubectl(kept, "wait", "job/gone", "-n", "torch", made, "--timeout=20s")
        groups = self.kubectl(kept, "get", "podgroups", "-n", "torch", "-o", "name").split()
        (group,) = [name for name in groups if "/gone-main-" in name]
        self.kubectl(kept, "delete", "job", "gone", "-n", "torch", "--cascade=foreground")
        self.kubectl(kept, "wait", group, "-n", "torch", "--for=delete", "--timeout=20s")


def a_job(name: str) -> dict[str, Any]:
    """An Indexed Job of two pods."""
    container = {"name": "main", "image": "busybox"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completionMode": "Indexed",
            "parallelism": 2,
            "completions": 2,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def test_apiserver_prints_its_url_and_stops_on_ctrl_c(tmp_path: Path) -> None:
    """It serves the API, writes a kubeconfig, and ends without an error."""
    path = tmp_path / "kubeconfig"
    with running("apiserver", "--port", "0", "--kubeconfig-out", str(path)) as process:
        url = url_in(process.line("http://127.0.0.1:"))
        with urllib.request.urlopen(f"{url}/readyz") as answer:  # noqa: S310 - loopback
            assert answer.read() == b"ok"
        assert url in path.read_text()
        assert process.end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_apiserver_stops_on_either_signal(number: signal.Signals) -> None:
    """Started by a script, it ends at SIGINT as at a terminal."""
    with running("apiserver") as process:
        process.line("http://")
        assert process.end(number) == 0


def test_a_real_cluster_is_worked_on_until_ctrl_c(tmp_path: Path) -> None:
    """With a kubeconfig no server and no story is started; the functions work on that cluster."""
    path = tmp_path / "kubeconfig"
    with running("apiserver", "--kubeconfig-out", str(path)) as server:
        url = url_in(server.line("http://"))
        with running("run", "--kubeconfig", str(path)) as process:
            process.line(url)
            for obj in (
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
                {**a_job("marked"), "metadata": {"name": "marked", "namespace": "team"}},
            ):
                post(url, obj)
            assert re.search(r"create_workload +Job team/marked add", process.line("Job team/marked"))
            assert process.end() == 0
        assert server.end() == 0


def post(url: str, obj: dict[str, Any]) -> None:
    """Create an object as a client; label the template, because no policy is installed."""
    if obj["kind"] == "Job":
        obj = json.loads(json.dumps(obj))
        obj["spec"]["template"]["metadata"] = {"labels": {"muster.dev/group": "main"}}
    path = "/api/v1/namespaces" if obj["kind"] == "Namespace" else "/apis/batch/v1/namespaces/team/jobs"
    body = json.dumps(obj).encode()
    request = urllib.request.Request(  # noqa: S310 - loopback
        url + path, data=body, headers={"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - likewise
        assert answer.status == 201
