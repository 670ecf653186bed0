"""docs/tutorial-own-step.md from top to bottom, with the wheel alone: files are written, commands typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.installed import ROOT, Installed

PAGE = (ROOT / "docs/tutorial-own-step.md").read_text()
EXAMPLE = ROOT / "eventing/examples/label_racks"
TYPED = {"muster", "pytest", "cat"}
"""The programs that are run; the others install, or need a cluster or a builder of images."""

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


@pytest.fixture(name="outputs", scope="module")
def _outputs(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """The commands that were typed in a folder where the page was followed, with their output."""
    folder, outputs = tmp_path_factory.mktemp("team"), list[tuple[str, str]]()
    for block in shown():
        if block.file:
            assert (folder / block.file).exists(), f"{block.file} was not written by muster new-step"
            (folder / block.file).write_text(block.content)
        elif block.command[0] == "cat":
            outputs.append(("cat", (folder / block.command[1]).read_text()))
        elif block.command[0] in TYPED:
            words = block.command if block.command[0] == "muster" else ("python", "-m", *block.command)
            ran = installed.run(*words, cwd=folder)
            assert (ran.returncode != 0) == bool(block.failure), f"{block.command}: {ran.stdout}"
            assert block.failure in ran.stdout
            outputs.append((" ".join(block.command), ran.stdout))
    return outputs


@pytest.mark.timeout(180)  # it is followed as a whole
def test_the_commands_print_the_output_of_the_page(outputs: list[tuple[str, str]]) -> None:
    """Four tests pass at first and five at the end, and the step is among the others in `muster run`."""
    by_command = dict(outputs)
    tests = [output for command, output in outputs if command == "pytest label_racks"]
    assert ("4 passed" in tests[0], "5 passed" in tests[-1]) == (True, True)
    assert "racks.example.com/rack-1: '2'" in by_command["cat"]
    assert (
        "RacksLabelled: 3 pods on 2 racks"
        in by_command["muster run --overlay label_racks --story torch --verbose"]
    )


@pytest.mark.parametrize("path", ["function/step.py", "role.yaml", "tests/test_label_racks.py"], ids=str)
def test_the_example_equals_the_end_of_the_page(path: str) -> None:
    """File by file; those that the page does not show are as `muster new-step` writes them."""
    files = {block.file: block.content for block in shown() if block.file}
    assert files[f"label_racks/{path}"] == (EXAMPLE / path).read_text()
