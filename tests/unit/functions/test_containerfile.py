"""The instructions of the Containerfile; tests/contract/test_func_server.py executes them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from muster.objects import yaml_files
from tests.support import containerfile
from tests.support.containerfile import ROOT, in_context

SERVICES = [
    *sorted((ROOT / "eventing/base/functions").glob("*.yaml")),
    ROOT / "eventing/base/dead-letter.yaml",
]


def test_copied_files_exist_in_the_build_context() -> None:
    """Each source of the image; .dockerignore would hide one silently."""
    sources = [instruction.copied[0] for instruction in containerfile.of_word("COPY")]
    assert sources == ["requirements.txt", "shared/muster", "functions"]
    for source in sources:
        assert (ROOT / source).exists()
        assert in_context(source)


def test_unneeded_files_are_not_in_the_build_context() -> None:
    """Gigabytes that were built or fetched would be sent to the builder first."""
    paths = (".git", ".venv", ".cluster", "tests", "shared/muster/simulator", "shared/muster/local")
    assert [path for path in paths if in_context(path)] == []


def test_the_base_is_pinned_and_of_a_python_that_is_tested() -> None:
    """By digest, since a tag can be moved; the minor version is the one that the code is checked for."""
    (base,) = containerfile.of_word("FROM")
    version = re.fullmatch(r"python:(3\.\d+)\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", base.rest)
    assert version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["mypy"]["python_version"] == version[1]


def test_every_requirement_is_locked_by_hash() -> None:
    """The install wants hashes, takes no source that would be built, and every line has one."""
    install = containerfile.of_word("RUN")[0].command
    assert {"--require-hashes", "--only-binary=:all:"} < set(install)
    requirements = (ROOT / install[-1]).read_text()
    packages = re.findall(r"^([a-z0-9.-]+)==", requirements, re.MULTILINE)
    assert {"waitress", "a2wsgi", "flask", "kubernetes"} < set(packages)
    assert len(re.findall(r"== ?\S+(?: ;.*)? \\\n    --hash=sha256:", requirements)) == len(packages)


def test_signals_reach_the_server_without_a_shell() -> None:
    """RUN and ENTRYPOINT are JSON: a shell as the first process would keep SIGTERM to itself."""
    commands = [*containerfile.of_word("RUN"), *containerfile.of_word("ENTRYPOINT")]
    assert [command.command[0] for command in commands] == ["python"] * len(commands)


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: str(path.stem))
def test_the_image_fits_the_services(path: Path) -> None:
    """The port, a function that it serves, and a user that runAsNonRoot lets run: a number that is not 0."""
    (container,) = yaml_files.load(path.read_text())["spec"]["template"]["spec"]["containers"]
    (user,), (port,) = containerfile.of_word("USER"), containerfile.of_word("EXPOSE")
    assert [int(number) > 0 for number in user.rest.split(":")] == [True, True]
    assert container["securityContext"]["runAsNonRoot"]
    assert container["image"] == "muster/muster"
    assert container["args"] == [path.stem]
    assert [int(port.rest)] == [declared["containerPort"] for declared in container["ports"]]
