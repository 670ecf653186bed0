"""Each folder of functions/ is a project that func can build, with correct metadata."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tomllib
from datetime import datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from click.testing import CliRunner

from muster.cli import main
from muster.data import EVENTING
from muster.objects import yaml_files
from muster.runtime.config import from_environment
from muster.runtime.steps import step_named
from muster.simulator.overlays import Manifest, built, load, of_kind
from tests.docs.commands import commands
from tests.replays import inputs

ROOT = Path(__file__).parents[2]
STEPS = sorted(path.parent.parent.name for path in ROOT.glob("functions/*/function/step.py"))
FUNCTIONS = sorted(path.parent.name for path in ROOT.glob("functions/*/func.yaml"))
"""The steps, and what keeps the dead letters."""
OWN = {"func.yaml", "README.md", "function"}

each_step = pytest.mark.parametrize("step", STEPS)
each_function = pytest.mark.parametrize("step", FUNCTIONS)


def read_yaml(path: str) -> Any:
    """A YAML file of the repository."""
    return yaml_files.load((ROOT / path).read_text())


@cache
def staged() -> Path:
    """The projects that `make stage` writes."""
    folder = Path(mkdtemp())
    atexit.register(shutil.rmtree, folder)
    subprocess.run(["make", "-s", "stage", f"OUT={folder}"], cwd=ROOT, check=True, capture_output=True)
    return folder


def staged_func(step: str) -> Any:
    """The func.yaml that func gets: what all functions share, and the function's own."""
    return yaml_files.load((staged() / step / "func.yaml").read_text())


def projects_in(folder: Path) -> list[str]:
    """The folders of projects, beside which is the file that says who wrote them."""
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def dashed(step: str) -> str:
    """The name that Kubernetes sees."""
    return step.replace("_", "-")


def test_there_are_functions() -> None:
    """Tests over an empty folder would prove nothing."""
    assert "create_workload" in STEPS
    assert len(STEPS) >= 5


@each_function
def test_same_files_everywhere(step: str) -> None:
    """Who knows one function's folder knows them all."""
    names = {path.name for path in (ROOT / "functions" / step).iterdir()}
    assert names - {"__pycache__"} == OWN


@each_step
def test_all_names_of_a_step_agree(step: str) -> None:
    """Step, folder, func's name, service account, trigger, role and field manager are found by one search."""
    declared = step_named(step)
    func = staged_func(step)
    assert declared.name == step
    assert declared.manager == f"muster-{dashed(step)}"
    assert (func["name"], func["deploy"]["serviceAccountName"]) == (dashed(step), dashed(step))
    assert (ROOT / f"eventing/triggers/{dashed(step)}.yaml").exists()
    assert (ROOT / f"eventing/rbac/{dashed(step)}.yaml").exists()


@each_step
def test_func_and_kustomize_agree(step: str) -> None:
    """A function deployed by func runs as one deployed by kustomize does."""
    func = staged_func(step)
    service = read_yaml(f"eventing/base/functions/{dashed(step)}.yaml")
    revision = service["spec"]["template"]
    (container,) = revision["spec"]["containers"]
    options, resources = func["deploy"]["options"], func["deploy"]["options"]["resources"]
    assert func["deploy"]["namespace"] == service["metadata"]["namespace"]
    assert {entry["key"]: entry["value"] for entry in func["deploy"]["labels"]} == service["metadata"][
        "labels"
    ]
    assert resources["limits"].pop("concurrency") == revision["spec"]["containerConcurrency"]
    assert resources == container["resources"]
    assert func["deploy"]["healthEndpoints"] == {
        "liveness": container["livenessProbe"]["httpGet"]["path"],
        "readiness": container["readinessProbe"]["httpGet"]["path"],
    }
    min_scale = revision["metadata"]["annotations"]["autoscaling.knative.dev/min-scale"]
    assert str(options["scale"]["min"]) == min_scale


@pytest.mark.parametrize(
    "service",
    [*of_kind(load(), "Service"), *of_kind(load(built("one-service")), "Service")],
    ids=lambda obj: str(obj["metadata"]["name"]),
)
def test_every_event_that_is_let_in_has_a_thread(service: Manifest) -> None:
    """More of them would queue inside the pod, where Knative does not see that another pod is needed."""
    pod = service["spec"]["template"]["spec"]
    settings = from_environment({entry["name"]: entry["value"] for entry in pod["containers"][0]["env"]})
    assert 0 < pod["containerConcurrency"] <= settings.threads


@each_function
def test_func_settings(step: str) -> None:
    """Func leaves the request alone, and makes no triggers of its own: those have no retries."""
    func = staged_func(step)
    assert (func["runtime"], func["invoke"], func["specVersion"]) == ("python", "http", "0.36.0")
    created = datetime.fromisoformat(func["created"])
    assert created.year > 1, "func takes a project without a time for one that was not initialised"
    assert "subscriptions" not in func["deploy"]


def package(requirement: str) -> str:
    """The name of a requirement: `flask` of `flask>=3.1`."""
    return re.split(r"[^a-z0-9-]", requirement)[0]


@each_function
def test_dependencies_are_the_roots(step: str) -> None:
    """What a function installs is what the tests ran with, in the same versions."""
    root = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    project = tomllib.loads((staged() / step / "pyproject.toml").read_text())["project"]
    installed = {
        f"{name}=={version(name)}" for name in map(package, project["dependencies"]) if name != "tzdata"
    }
    pinned = {pin.partition(";")[0].strip() for pin in project["dependencies"]}
    assert installed <= pinned
    wanted = {*root["dependencies"], *root["optional-dependencies"]["knative"]}
    assert set(map(package, wanted)) <= set(map(package, pinned))
    assert all("==" in pin for pin in pinned)
    assert (project["name"], project["requires-python"]) == ("function", root["requires-python"])


def test_images_contain_only_imported_packages() -> None:
    """Simulators, the command and the tools behind it stay out of what is deployed."""
    packages = {path.name for path in (staged() / STEPS[0] / "muster").iterdir()}
    modules = {"__init__.py", "library.py"}
    assert packages == modules | {"objects", "policy", "events", "cluster", "runtime"}


def test_own_steps_are_staged_beside_them(tmp_path: Path) -> None:
    """With the folders of STEPS: their code, Muster's packages, and their dependencies beside Muster's."""
    own = tmp_path / "my_step"
    shutil.copytree(EVENTING / "examples/label_racks", own)
    pyproject = (own / "pyproject.toml").read_text()
    (own / "pyproject.toml").write_text(
        pyproject.replace('dependencies = ["', 'dependencies = ["httpx>=0.28", "')
    )
    command = ["make", "-s", "stage", f"OUT={tmp_path}/out", f"STEPS={own}"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert projects_in(tmp_path / "out") == sorted([*FUNCTIONS, "my_step"])
    project = tmp_path / "out" / "my_step"
    dependencies = tomllib.loads((project / "pyproject.toml").read_text())["project"]["dependencies"]
    assert "httpx>=0.28" in dependencies
    assert [entry for entry in dependencies if entry.startswith("muster")] == []
    assert yaml_files.load((project / "func.yaml").read_text())["name"] == "label-racks"
    assert not (project / "tests").exists()
    _assert_runs_alone(project)


@each_step
def test_links_and_commands_of_the_readme_are_good(step: str) -> None:
    """Each README leads to files that exist, and fits on a screen."""
    readme = ROOT / "functions" / step / "README.md"
    text = readme.read_text()
    assert len(text.splitlines()) <= 28
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    assert [link for link in links if not (readme.parent / link).exists()] == []


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


def test_dead_letters_are_no_step() -> None:
    """One function beside the steps; func deploys it as kustomize does."""
    assert set(FUNCTIONS) - set(STEPS) == {"dead_letter"}
    func, service = staged_func("dead_letter"), read_yaml("eventing/base/dead-letter.yaml")
    revision = service["spec"]["template"]
    (container,) = revision["spec"]["containers"]
    limits = func["deploy"]["options"]["resources"]["limits"]
    assert func["name"] == func["deploy"]["serviceAccountName"] == service["metadata"]["name"]
    assert revision["spec"]["serviceAccountName"] == service["metadata"]["name"]
    assert limits == {
        **container["resources"]["limits"],
        "concurrency": revision["spec"]["containerConcurrency"],
    }
    most = revision["metadata"]["annotations"]["autoscaling.knative.dev/max-scale"]
    assert func["deploy"]["options"]["scale"] == {"max": int(most)}
    readme = ROOT / "functions" / "dead_letter" / "README.md"
    links = re.findall(r"\]\(([^)]+)\)", readme.read_text())
    assert links
    assert [link for link in links if not (readme.parent / link).exists()] == []


def test_table_names_every_function_and_its_events_out() -> None:
    """functions/README.md has one row for each function, and each word it answers with."""
    text = (ROOT / "functions" / "README.md").read_text()
    assert re.findall(r"^\| \[(\w+)\]\(\1\)", text, re.MULTILINE) == sorted(STEPS, key=text.index)
    assert set(re.findall(r"^\| \[(\w+)\]", text, re.MULTILINE)) == set(STEPS)
    policy = "".join(path.read_text() for path in (ROOT / "shared" / "muster" / "policy").rglob("*.py"))
    words = set(re.findall(r'Reply\(\s*"([a-z-]+)"(?: if \S+ else "([a-z-]+)")?', policy))
    assert words
    for word in filter(None, (word for pair in words for word in pair)):
        assert f"`{word}`" in text, f"the table does not tell of {word}"


@pytest.mark.parametrize("project_name", [STEPS[0], "dead_letter"])
def test_a_staged_folder_runs_alone(project_name: str) -> None:
    """The folder that func gets holds all that `new` needs, and none of the repository."""
    assert projects_in(staged()) == FUNCTIONS
    _assert_runs_alone(staged() / project_name)


def _assert_runs_alone(project: Path) -> None:
    script = (
        "import function, muster\n"
        "made = function.new()\n"
        "print(function.__file__, muster.__file__, function.new.__name__, made.alive(), made.ready()[0])\n"
        "made.stop()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        cwd=project,
        env={**os.environ, "MUSTER_API_SERVER": "http://127.0.0.1:1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.stdout == (
        f"{project}/function/__init__.py {project}/muster/__init__.py new (True, 'OK') False\n"
    )
