"""`make cluster` leaves a cluster up and says what to try; `make cluster-down` ends it and nothing else."""

from __future__ import annotations

import contextlib
import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.cluster import manifests, modules
from tests.cluster.__main__ import state_file
from tests.cluster.api import KubernetesApi
from tests.cluster.modules import CACHE_VARIABLE, REPOSITORY, cache_folder
from tests.cluster.processes import ComponentProcess, start, until
from tests.docs.commands import commands
from tests.e2e.support.admission import policies_at_work
from tests.support.release_files import ReleaseFiles

README = REPOSITORY / "README.md"
Done = subprocess.CompletedProcess[str]
OPTED_IN = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "probe", "labels": {"muster.dev/gang-jobs": "enabled"}},
}


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is built is used; what is up is another one than the developer's own, which stays as it is."""
    built = cache_folder() / "bin"
    built.mkdir(parents=True, exist_ok=True)
    apart = tmp_path / "cache"
    apart.mkdir()
    (apart / "bin").symlink_to(built)
    monkeypatch.setenv(CACHE_VARIABLE, str(apart))


def _cluster(*arguments: str) -> Done:
    return _typed(f"{sys.executable} -m tests.cluster {' '.join(arguments)}")


def _typed(*commands: str) -> Done:
    """What a shell makes of these lines."""
    return subprocess.run(
        ["/bin/bash", "-ec", "\n".join(commands)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def _printed(done: Done) -> tuple[list[str], str]:
    """The commands that `up` says to try, in two parts: for one terminal, and what stays in another one."""
    lines = [line.partition("   #")[0].strip() for line in done.stdout.splitlines() if line.startswith("  ")]
    (stays,) = (line for line in lines if "muster run" in line)
    assert lines.pop() == "make cluster-down"
    return [line for line in lines if line != stays], stays


@contextlib.contextmanager
def _running(exports: list[str], command: str, folder: Path) -> Iterator[ComponentProcess]:
    """A second terminal, in which a command stays."""
    folder.mkdir(exist_ok=True)
    process = start("terminal", ["/bin/bash", "-c", "\n".join([*exports, f"exec {command}"])], folder)
    try:
        yield process
    finally:
        process.stop()


@pytest.mark.real
@pytest.mark.timeout(400)
def test_printed_commands_work_and_down_ends_everything(tmp_path: Path) -> None:
    """Typed as printed, four pods run as one gang; then every process and the folder are gone."""
    up = _cluster("up")
    assert up.returncode == 0, up.stderr
    state = json.loads(state_file().read_text())
    processes = [ComponentProcess(name, pid, Path(log)) for name, pid, log in state["processes"]]
    try:
        lines, stays = _printed(up)
        exports = [line for line in lines if line.startswith("export ")]
        get = next(line for line in lines if line.startswith("kubectl get "))
        ready = "kubectl get nodes -o jsonpath='{.items[*].status.conditions[?(@.type==\"Ready\")].status}'"
        assert _typed(*exports, ready).stdout.split() == ["True"] * 3
        assert "/torch-distributed" in _typed(*exports, get).stdout
        with _running(exports, stays, tmp_path) as muster:
            assert until(lambda: "http://" in muster.log.read_text(), 60), muster.tail()
            (*prepare, create, look) = lines
            assert _typed(*prepare).returncode == 0
            api = KubernetesApi.from_kubeconfig(Path(state["folder"]) / "admin.kubeconfig")
            manifests.apply(api, [OPTED_IN])
            assert policies_at_work(api, "probe"), "a person would have been slower than the API server"
            tried = _typed(*exports, create, look)
            assert tried.returncode == 0, tried.stderr
            assert until(lambda: _typed(*exports, look).stdout.count(" Running ") == 4, 60), muster.tail()
            groups = json.loads(_typed(*exports, f"{look} -o json").stdout)["items"]
            (gang,) = [group for group in groups if group["kind"] == "PodGroup"]
            assert gang["spec"]["schedulingPolicy"] == {"gang": {"minCount": 4}}
            with _running(exports, f"{Path(sys.executable).parent}/muster view", tmp_path / "view") as view:
                assert until(lambda: "open http://" in view.log.read_text(), 60), view.tail()
                (page,) = (word for word in view.log.read_text().split() if word.startswith("http://"))
                with urlopen(f"{page}/events", timeout=10) as events:  # noqa: S310 - a page of loopback
                    shown = b"".join(iter(events.readline, b"\n")).decode()
                assert shown.count('"state": "Running"') == 4
            columns = _typed(*exports, "kubectl get podgroups -A").stdout.splitlines()[0].split()
            assert " ".join(columns[1:]) in " ".join(README.read_text().split()), (
                "README shows what kubectl prints"
            )
        again = _cluster("up")
        assert (again.returncode, "make cluster-down" in again.stderr) == (1, True)
        assert all(process.alive() for process in processes)
    finally:
        down = _cluster("down")
    assert (down.returncode, down.stderr) == (0, "")
    assert [process.name for process in processes if process.alive()] == []
    assert not Path(state["folder"]).exists()
    assert not state_file().exists()
    assert _cluster("down").returncode == 0


@pytest.mark.real
@pytest.mark.timeout(600)
def test_with_knative_the_installation_can_be_followed_to_its_end(tmp_path: Path) -> None:
    """Steps 3 to 6 of install.md: all becomes Ready, and the Job of step 5 runs; then the same with helm."""
    files = ReleaseFiles(tmp_path)
    up = _cluster("up", "knative")
    assert up.returncode == 0, up.stderr
    try:
        exports = [line.strip() for line in up.stdout.splitlines() if line.startswith("  export ")]
        exports = [line.partition("   #")[0] for line in exports]
        exports.append(f"export PATH={Path(sys.executable).parent}:$PATH")
        apply, install = files.found(_lines("## 3. Install"))
        look, check = _lines("## 4. Check")
        assert _typed(*exports, apply).returncode == 0
        kinds = "broker,triggers,apiserversources,pingsources,ksvc"
        ready = f"kubectl -n muster-system wait --for=condition=Ready {kinds} --all --timeout=120s"
        assert _typed(*exports, ready, look).returncode == 0
        checked = _typed(*exports, check)
        assert (checked.returncode, "FAIL" in checked.stdout) == (0, False), checked.stdout
        label, create, *looks = _lines("## 5. Opt a namespace in")
        opened = _typed(*exports, "kubectl create namespace team-a", label)
        assert opened.returncode == 0, opened.stderr
        folder = Path(json.loads(state_file().read_text())["folder"])
        api = KubernetesApi.from_kubeconfig(folder / "admin.kubeconfig")
        assert policies_at_work(api, "team-a")
        assert _typed(*exports, create).returncode == 0
        pods = "kubectl -n team-a get pods,podgroups"
        assert until(lambda: _typed(*exports, pods).stdout.count(" Running ") == 4, 150)
        for look in looks:
            assert _typed(*exports, look).returncode == 0
        differs, *again, upgrade, rollback = files.found(_lines("## 6. Upgrade"))
        assert _typed(*exports, differs).stdout == ""
        assert _typed(*exports, *again).returncode == 0
        assert _typed(*exports, apply.replace(" apply ", " delete ")).returncode == 0
        homes = " ".join(f"HELM_{name}_HOME={tmp_path}" for name in ("CACHE", "CONFIG", "DATA"))
        helm = f'helm() {{ {homes} {modules.build(modules.HELM)} "$@"; }}'
        for step in (install, upgrade, rollback):
            assert _typed(*exports, helm, step, ready).returncode == 0, step
        checked = _typed(*exports, helm, check)
        assert (checked.returncode, "FAIL" in checked.stdout) == (0, False), checked.stdout
    finally:
        assert _cluster("down").returncode == 0


def _lines(heading: str) -> list[str]:
    """The commands of a chapter of install.md."""
    typed = commands(REPOSITORY / "docs/install.md", heading)
    return [
        " ".join(word if word == "|" else shlex.quote(word) for word in command.words) for command in typed
    ]
