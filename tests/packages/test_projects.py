"""`make stage` writes a project of each function that func can build, and of steps of one's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from muster.cli import main
from muster.data import EVENTING
from muster.objects import yaml_files
from muster.runtime.steps import OPTIONAL, step_named
from muster.simulator.overlays import load, of_kind
from tests.docs.commands import commands
from tests.replays import inputs

ROOT = Path(__file__).parents[2]
STEPS = sorted(path.parents[1].name for path in ROOT.glob("functions/*/function/step.py"))
FUNCTIONS = [*STEPS, "dead_letter"]

each_step = pytest.mark.parametrize("step", STEPS)


def read_yaml(path: Path) -> Any:
    """A YAML file."""
    return yaml_files.load(path.read_text())


@pytest.fixture(name="staged", scope="module")
def _staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The projects that `make stage` writes, with one of a step of one's own; written twice."""
    folder = tmp_path_factory.mktemp("staged")
    own = Path(shutil.copytree(EVENTING / "examples/label_racks", folder / "my_step"))
    pyproject = (own / "pyproject.toml").read_text()
    (own / "pyproject.toml").write_text(
        pyproject.replace('dependencies = ["', 'dependencies = ["httpx>=0.28", "')
    )
    command = ["make", "-s", "stage", f"OUT={folder}/out", f"STEPS={own}"]
    for _ in range(2):
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder / "out"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_all_names_of_a_function_agree(function: str, staged: Path) -> None:
    """Folder, func's name, service account, Service and role; a step's trigger and field manager too."""
    name, func = function.replace("_", "-"), read_yaml(staged / function / "func.yaml")
    assert {path.name for path in (ROOT / "functions" / function).iterdir()} - {"__pycache__"} == {
        "func.yaml",
        "README.md",
        "function",
    }
    assert (func["name"], func["deploy"]["serviceAccountName"]) == (name, name)
    assert (func["runtime"], func["invoke"], func["specVersion"]) == ("python", "http", "0.36.0")
    assert func["created"]
    component = EVENTING / "components" / name
    assert (component / "role.yaml" if function in OPTIONAL else EVENTING / f"rbac/{name}.yaml").exists()
    if function in STEPS:
        declared = step_named(function)
        assert (declared.name, declared.manager) == (function, f"muster-{name}")
        trigger = EVENTING / f"triggers/{name}.yaml"
        assert (component / "trigger.yaml" if function in OPTIONAL else trigger).exists()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_func_and_kustomize_agree(function: str, staged: Path) -> None:
    """A function deployed by func runs as one deployed by kustomize does."""
    func = read_yaml(staged / function / "func.yaml")
    objects = [*load(), *load(EVENTING / "components" / "restart-gang")]
    services = {service["metadata"]["name"]: service for service in of_kind(objects, "Service")}
    service = services[function.replace("_", "-")]
    revision = service["spec"]["template"]
    (container,) = revision["spec"]["containers"]
    labels = {entry["key"]: entry["value"] for entry in func["deploy"]["labels"]}
    assert labels.items() <= service["metadata"]["labels"].items()
    resources = func["deploy"]["options"]["resources"]
    assert resources["limits"].pop("concurrency") == revision["spec"]["containerConcurrency"]
    assert resources == container["resources"]
    assert func["deploy"]["healthEndpoints"] == {
        "liveness": container["livenessProbe"]["httpGet"]["path"],
        "readiness": container["readinessProbe"]["httpGet"]["path"],
    }
    scale = func["deploy"]["options"]["scale"]
    annotations = revision["metadata"]["annotations"]
    for bound in ("min", "max"):
        assert str(scale.get(bound)) == annotations.get(f"autoscaling.knative.dev/{bound}-scale", "None")


@pytest.mark.parametrize("project", ["dead_letter", "my_step"])
def test_a_staged_folder_runs_alone(project: str, staged: Path) -> None:
    """It holds all that `new` needs, and none of the repository, in the versions of the tests."""
    folder = staged / project
    metadata = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    pins = {re.split(r"[^a-z0-9-]", pin)[0]: pin for pin in metadata["dependencies"]}
    assert ("httpx" in pins, "muster-gangs" in pins) == (project == "my_step", False)
    for name in ("a2wsgi", "flask", "kubernetes"):
        assert pins[name] == f"{name}=={version(name)}"
    assert not (folder / "tests").exists()
    script = (
        "import function, muster\n"
        "made = function.new()\n"
        "print(function.__file__, muster.__file__, made.alive(), made.ready()[0])\n"
        "made.stop()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "MUSTER_API_SERVER": "http://127.0.0.1:1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout == f"{folder}/function/__init__.py {folder}/muster/__init__.py (True, 'OK') False\n"


@each_step
def test_the_commands_of_the_readme_print_the_golden_plan(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typed one after the other, they print what the case's plan.yaml says."""
    write, plan = commands(ROOT / "functions" / step / "README.md")
    assert write.words[:3] == ("python", "-m", "tests.replays.inputs")
    case, folder = write.words[3:]
    monkeypatch.chdir(tmp_path)
    assert inputs.main([str(ROOT / case), folder]) == 0
    printed = CliRunner().invoke(main, plan.arguments)
    assert printed.exit_code == 0, printed.output
    assert printed.stdout == (ROOT / case / "plan.yaml").read_text()
