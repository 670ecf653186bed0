"""The image that the operations document derives for traces."""

from __future__ import annotations

import re
import tomllib

from release.page import project_version
from tests.docs import commands
from tests.docs.commands import ROOT
from tests.support import containerfile

SAID = containerfile.shown_in(ROOT / "docs/operations.md")


def test_it_installs_the_extra_in_the_versions_that_are_tested() -> None:
    """All packages of `muster[traces]`, each as it is locked for the tests of traces."""
    (install,) = [instruction.command for instruction in SAID if instruction.word == "RUN"]
    assert install[:5] == ["python", "-m", "pip", "install", "--only-binary=:all:"]
    installed = dict(package.split("==") for package in install[5:])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = {package.partition(">=")[0] for package in project["optional-dependencies"]["traces"]}
    locked = dict(
        re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements-dev.txt").read_text(), re.MULTILINE)
    )
    assert installed == {package: locked[package] for package in extra}


def test_it_is_built_upon_an_image_that_the_reader_has_and_runs_as_that_does() -> None:
    """The install document pushes it; the user is a number that is not root's in the end."""
    words = [instruction.word for instruction in SAID]
    assert words == ["FROM", "USER", "RUN", "USER"]
    (pushed,) = [command for command in commands.of("make") if "PUSH=1" in command.words]
    registry = pushed.words[2].removeprefix("REGISTRY=")
    assert SAID[0].rest == f"{registry}/muster:{project_version()}"
    assert SAID[-1] == containerfile.of_word("USER")[0]
