"""Every command in a document can be typed as it stands."""

from __future__ import annotations

import contextlib
import importlib.util
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

from bench.__main__ import FIGURES
from muster.cli import main
from muster.data import EVENTING
from muster.local.stories.story import STORIES
from muster.testing import RunningStack
from release.chart import OVERLAYS
from release.page import project_version
from tests.cluster import kubectl
from tests.docs import commands
from tests.docs.commands import ALL, ROOT, Command
from tests.replays import inputs
from tests.replays.golden import GoldenCase

INSTALL = ROOT / "docs/install.md"
REGISTRY = "registry.example.com/team"
IMAGE = f"{REGISTRY}/muster@sha256:47f55cd2a0ba6a1e6ab5ac1b0bd1bd6ee4cb1a4c3d41a1ec5e4a5b0fa2d9a111"
RELEASED = {f"REGISTRY={REGISTRY}", "PUSH=1", f"VERSION={project_version()}", f"IMAGE={IMAGE}"}
"""Settings of `make images` and `make release`, which tests/packages/test_release.py runs with these."""
STAYS = {"run", "record", "apiserver", "view"}
"""Commands that run until they are stopped; their options are read. test_tutorial.py runs them."""


def _cases(program: str) -> list[object]:
    return [pytest.param(command, id=str(command)) for command in commands.of(program)]


@pytest.fixture(name="kubeconfig", scope="module")
def _kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Of the local stack, with the namespace and the jobs that the documents speak of."""
    with RunningStack() as stack:
        stack.create_namespace("team-a")
        stack.create_namespace("muster-system")
        (mesh,) = STORIES["indexed-job"].manifest
        mesh["metadata"] = {"name": "mesh"}
        for obj in (*STORIES["torch"].manifest, *STORIES["indexed-job"].manifest, mesh):
            stack.create(obj, "team-a")
        stack.settle()
        config = yaml.safe_load(stack.kubeconfig())
        config["contexts"] += [{**config["contexts"][0], "name": name} for name in ("local", "staging")]
        path = tmp_path_factory.mktemp("docs") / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        yield path


def test_every_program_is_checked_somewhere() -> None:
    """Here, or, as helm, where test_make_cluster.py types it."""
    assert {command.program for command in ALL} <= {
        "make",
        "muster",
        "kubectl",
        "func",
        "helm",
        "python",
    }
    assert len(ALL) > 30


@pytest.mark.parametrize("command", _cases("make"))
def test_make(command: Command) -> None:
    """The target is in the Makefile, with words for `make help`."""
    target, *settings = command.arguments
    assert set(settings) <= {"KNATIVE=1", *(f"FIGURE={name}" for name in FIGURES), *RELEASED}
    assert re.search(rf"^{target}:.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize(
    "command",
    [case for case in _cases("muster") if case.values[0].arguments[0] in STAYS],  # type: ignore[attr-defined]
)
def test_muster_that_stays(command: Command) -> None:
    """Its options are there and take these values."""
    name, *arguments = command.arguments
    assert isinstance(main, click.Group)
    subcommand = main.get_command(click.Context(main), name)
    assert subcommand
    with subcommand.make_context(name, arguments) as context:
        assert context.params


@pytest.mark.parametrize(
    "command",
    [case for case in _cases("muster") if case.values[0].arguments[0] not in STAYS],  # type: ignore[attr-defined]
)
def test_muster(command: Command, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It runs, against the local stack where it needs a cluster, and says something."""
    monkeypatch.chdir(ROOT)
    if not all(Path(word).exists() for word in command.arguments if _is_sample(word)):
        # README's event.json and cluster.yaml stand for the reader's own.
        _provide_samples(tmp_path)
        monkeypatch.chdir(tmp_path)
    if WRITTEN.intersection(command.words):
        _write_inputs(command.document, tmp_path)
        monkeypatch.chdir(tmp_path)
    if command.words[1] == "new-step":
        monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, command.arguments, env={"KUBECONFIG": str(kubeconfig)})
    # `check` says 1 of a cluster that is not fit, and the local one has no Knative.
    assert result.exit_code in ({0, 1} if command.words[1] == "check" else {0}), result.output
    assert result.output or "github" in command.words  # annotations of faults, and our examples have none


SAMPLES = {"event.json", "cluster.yaml", "events.jsonl"}
WRITTEN = {"build/event.json", "build/cluster.yaml"}
"""What `python -m tests.replays.inputs CASE build` writes."""


def _is_sample(word: str) -> bool:
    return word in SAMPLES


def _provide_samples(folder: Path) -> None:
    inputs.write_inputs(GoldenCase(ROOT / "tests/replays/create_workload/a-TrainJob-gets-a-Workload"), folder)
    shutil.copy(ROOT / "tests/replays/recordings/1-torch.reference.jsonl", folder / "events.jsonl")


def _write_inputs(document: Path, folder: Path) -> None:
    """Run the command of the document that writes a case as files."""
    (words,) = (
        command.words
        for command in commands.of("python")
        if command.document == document and inputs.__name__ in command.words
    )
    case, below = words[3:]
    assert inputs.main([str(ROOT / case), str(folder / below)]) == 0


@pytest.mark.parametrize("command", _cases("func"))
def test_func(command: Command) -> None:
    """`make stage` makes the folder that it names, of a function that is there."""
    (path,) = command.after("--path")
    parent, _, name = path.rpartition("/")
    assert parent == "build/functions"
    assert (ROOT / "functions" / name / "func.yaml").exists()


@pytest.mark.parametrize("command", _cases("python"))
def test_python(command: Command) -> None:
    """The module exists, and so does the one that it serves."""
    modules = [*command.after("-m"), *(word for word in command.arguments if word.startswith("functions."))]
    assert modules
    for module in modules:
        assert importlib.util.find_spec(module)


@pytest.mark.parametrize("command", _cases("kubectl"))
def test_kubectl(command: Command) -> None:
    """The folders that it builds are kustomizations, and the files are there, or in a release."""
    folders = command.after("-k") + (command.after("kustomize") if "kustomize" in command.words[:2] else [])
    assert [folder for folder in folders if not (ROOT / folder / "kustomization.yaml").is_file()] == []
    released = {f"muster-{overlay}.yaml" for overlay in OVERLAYS}
    for path in command.after("-f", "--patch-file"):
        assert path == "-" or path.removeprefix("build/release/") in released or (ROOT / path).exists()


def _served_by_the_stack() -> list[object]:
    """Commands about kinds that the embedded API server serves; Knative's and RBAC's are not among them.

    Those with pipes are typed in tests/e2e/clusters/test_kubernetes_136_upgrade.py.
    """
    lines = [command for command in commands.of("kubectl") if not (command.piped or _needs_knative(command))]
    return [pytest.param(command, id=str(command)) for command in lines]


def _needs_knative(command: Command) -> bool:
    words = " ".join(command.words)
    return any(
        part in words
        for part in (
            "overlays/cluster",
            "muster-cluster.yaml",
            "muster-system get",
            "triggers",
            "knative-",
            "api-resources",
            "kubectl kustomize",
        )
    )


@pytest.mark.real
@pytest.mark.parametrize("command", _served_by_the_stack())
def test_kubectl_runs(command: Command, kubeconfig: Path) -> None:
    """Against the local stack, with the real kubectl."""
    words, made = command.arguments, ""
    if words[0] == "delete":
        # The document lets the gangs end first; those of the stack run on.
        words = [*words, "--wait=false"]
    if words[:2] == ["create", "configmap"]:
        # The embedded server reads no protobuf, which `create` sends of kinds that kubectl knows.
        made = kubectl.run(*words, "--dry-run=client", "-o", "yaml")
        words = ["create", "-f", "-"]
    kubectl.run(*words, kubeconfig=kubeconfig, given=made)


def test_links_lead_somewhere() -> None:
    """Every relative link of a document is a file or folder."""
    broken = []
    for document in commands.DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
            with contextlib.suppress(OSError):
                if "://" not in target and not (document.parent / target).exists():
                    broken.append(f"{document.name}: {target}")
    assert broken == []


def test_every_overlay_is_in_the_install_document() -> None:
    """A reader has to find the one that fits."""
    text = INSTALL.read_text()
    assert all(f"`{path.name}`" in text for path in (EVENTING / "overlays").iterdir() if path.is_dir())
