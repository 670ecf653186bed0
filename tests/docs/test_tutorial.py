"""docs/tutorial.md, typed as it stands in three terminals."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.cluster import modules
from tests.cluster.processes import until
from tests.docs.commands import ROOT, Command, commands
from tests.support.processes import PATIENCE, MusterProcess, running


def typed(command: Command) -> str:
    """What a command prints that ends by itself; a person looks again until `kubectl get` shows the Job."""
    line = shlex.join(command.words)

    def run() -> str:
        ran = subprocess.run(
            ["/bin/bash", "-c", line], capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert ran.returncode == 0, f"{line}: {ran.stderr}"
        return ran.stdout

    if line.startswith("kubectl get"):
        assert until(lambda: "train" in run(), PATIENCE)
    return run()


@pytest.mark.real
def test_every_command_works_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan and the replay are about the Job that was made again while its events were recorded."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    programs = [Path(sys.executable).parent, modules.build(modules.KUBECTL).parent]
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, programs), os.environ["PATH"]]))
    terminals: dict[str, MusterProcess] = {}
    printed: dict[str, str] = {}
    with ExitStack() as ends:
        for command in commands(ROOT / "docs/tutorial.md"):
            name = command.arguments[0]
            if name in {"run", "record"}:
                terminals[name] = ends.enter_context(running(*command.arguments))
            if name == "run":
                exported = terminals["run"].line("export KUBECONFIG=")
                monkeypatch.setenv("KUBECONFIG", exported.partition("=")[2])
            elif name == "record":
                terminals["record"].line("Ctrl-C stops it")
            else:
                if name == "plan":
                    assert terminals["record"].end() == 0
                printed[name] = typed(command)
    (plan,) = yaml.safe_load_all(printed["plan"])
    assert plan["reason"] == "WorkloadCreated"
    new = re.search(r"podgroup\S*/(train-main-\w{8})|^(train-main-\w{8})", printed["get"], re.MULTILINE)
    assert new
    assert f"name: {new[1] or new[2]}\n" in printed["replay"]
    assert "PodGroupsCreated, writes: 1" in printed["replay"]
