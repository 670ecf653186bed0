"""With the wheel alone: docs/tutorial-own-step.md from top to bottom, and docs/testing.md."""

from __future__ import annotations

import re
import shlex
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs.commands import commands
from tests.docs.files import shown_files
from tests.packages.installed import ROOT, Installed, build_wheel

PAGE = (ROOT / "docs/tutorial-own-step.md").read_text()
EXAMPLE = ROOT / "eventing/examples/label_racks"
TYPED = {"muster", "pytest", "cat"}
"""The programs that are run; the others install, or need a cluster or a builder of images."""
SHOWN_ELSEWHERE = ("pytest label_racks", "muster plan")
"""Commands about the step as it was scaffolded; tests/library/test_new_step.py has what they find."""

_BLOCK = re.compile(r"(?:`([\w./-]+)`[^`\n]*:\n\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Shown:
    """A block of the page: a file with its content, or a command with the text that its failure shows."""

    file: str = ""
    content: str = ""
    command: tuple[str, ...] = ()
    failure: str = ""


def shown() -> Iterator[Shown]:
    """Yield the files and commands of the page in order."""
    for name, language, content in _BLOCK.findall(PAGE):
        if language != "console":
            yield Shown(file=name, content=content)
            continue
        for line in content.splitlines():
            command, _, comment = line.removeprefix("$ ").partition("    # fails: ")
            yield Shown(command=tuple(shlex.split(command)), failure=comment)


@pytest.fixture(name="wheel", scope="module")
def _wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(name="installed", scope="module")
def _installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("venv") / "venv", wheel)


def test_the_wheel_has_one_package(wheel: Path) -> None:
    """And no bytecode."""
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"muster"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_command_is_a_plugin_of_kubectl(installed: Installed, tmp_path: Path) -> None:
    """The wheel installs `kubectl-muster`, and a mistyped command is guessed."""
    ran = installed.run("kubectl-muster", "gett", cwd=tmp_path)
    assert ran.stdout == "muster: No such command 'gett'. Did you mean 'get'? See kubectl muster --help\n"


@pytest.mark.timeout(180)  # it is followed as a whole
def test_the_commands_of_the_tutorial(installed: Installed, tmp_path: Path) -> None:
    """Five tests pass at the end, and the step is among the others in `muster run`."""
    outputs, written = dict[str, str](), False
    for block in shown():
        text = " ".join(block.command)
        if block.file:
            assert (tmp_path / block.file).exists(), f"{block.file} was not written by muster new-step"
            (tmp_path / block.file).write_text(block.content)
            written = True
        elif block.command[0] == "cat":
            outputs["cat"] = (tmp_path / block.command[1]).read_text()
        elif block.command[0] in TYPED and (written or not text.startswith(SHOWN_ELSEWHERE)):
            words = block.command if block.command[0] == "muster" else ("python", "-m", *block.command)
            ran = installed.run(*words, cwd=tmp_path)
            assert (ran.returncode != 0) == bool(block.failure), f"{text}: {ran.stdout}"
            assert block.failure in ran.stdout
            outputs[text] = ran.stdout
    assert "racks.example.com/rack-1: '2'" in outputs["cat"]
    assert "5 passed" in outputs["pytest label_racks"]
    story = outputs["muster run --overlay label_racks --story torch --verbose"]
    assert "RacksLabelled: 3 pods on 2 racks" in story


def test_a_test_with_every_fixture(installed: Installed, tmp_path: Path) -> None:
    """All fixtures work, warnings are errors, and the golden file is written."""
    for name, content in shown_files(ROOT / "docs/testing.md").items():
        (tmp_path / name).write_text(content)
    _, new_step, update, everything = commands(ROOT / "docs/testing.md")
    assert installed.run(*new_step.words, cwd=tmp_path).returncode == 0
    for command, passed in ((update, "5 passed"), (everything, "9 passed")):
        ran = installed.run("python", "-W", "error", "-m", *command.words, "-q", cwd=tmp_path)
        assert passed in ran.stdout, ran.stdout
    assert "reason: Marked" in (tmp_path / "golden/test_plan.yaml").read_text()


@pytest.mark.parametrize("path", ["function/step.py", "role.yaml", "tests/test_label_racks.py"], ids=str)
def test_the_example_equals_the_end_of_the_page(path: str) -> None:
    """File by file; those that the page does not show are as `muster new-step` writes them."""
    files = {block.file: block.content for block in shown() if block.file}
    assert files[f"label_racks/{path}"] == (EXAMPLE / path).read_text()
