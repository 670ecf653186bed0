"""`make images` and `make release`: the files of a release page, and errors in one line."""

from __future__ import annotations

import hashlib
import io
import shutil
import tarfile
from pathlib import Path

import pytest
import yaml

from release import page
from release.__main__ import main
from tests.docs.commands import commands

DIGEST = f"sha256:{'a' * 64}"
IMAGE = f"registry.example.com/team/muster@{DIGEST}"
VERSION = page.project_version()
BUILDER = """#!/bin/sh
echo "$(basename "$0") $*" >> "{log}"
case "$*" in
*--digestfile*) printf %s {digest} > "$3";;
*RepoDigests*) echo "other.example.com/muster@sha256:0 registry.example.com/team/muster@{digest}";;
esac
exit {code}
"""
"""Says what it was asked for, and does as podman, docker or buildah."""


@pytest.fixture(name="release_folder", scope="module")
def _release_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    assert main(["release", "--version", VERSION, "--image", IMAGE, "--out", str(folder)]) == 0
    return folder


def test_a_release_page_has_its_files(release_folder: Path) -> None:
    """Wheel, chart, a manifest for each overlay that is not to be copied, checksums."""
    assert {path.name for path in release_folder.iterdir()} == {
        "SHA256SUMS",
        f"muster-{VERSION}.tgz",
        "muster-cluster.yaml",
        "muster-composite-pod-groups.yaml",
        "muster-kubernetes-1.36.yaml",
        "muster-native-jobs.yaml",
        "muster-one-service.yaml",
        f"muster_gangs-{VERSION}-py3-none-any.whl",
    }
    for line in (release_folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert digest == hashlib.sha256((release_folder / name).read_bytes()).hexdigest()
    with tarfile.open(release_folder / f"muster-{VERSION}.tgz") as archive:
        chart = yaml.safe_load(_member(archive, "Chart.yaml"))
        values = yaml.safe_load(_member(archive, "values.yaml"))
        template = _member(archive, "templates/cluster.yaml").decode()
    assert "kind: Namespace\n" not in template
    assert "muster-system" not in template
    assert template.count("image: {{ $.Values.image }}") == 8
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)
    assert values == {"image": IMAGE, "overlay": "cluster"}


def test_the_same_release_has_the_same_bytes(release_folder: Path, tmp_path: Path) -> None:
    """In place of an older release; what else is in the folder stays, such as a wheel of others."""
    older, other = tmp_path / "muster_gangs-0.0.1-py3-none-any.whl", tmp_path / "other-1.0-py3-none-any.whl"
    for file in (older, other):
        file.write_text("")
    said: list[str] = []
    page.write(tmp_path, VERSION, IMAGE, said.append)
    assert other.name not in (tmp_path / "SHA256SUMS").read_text()
    other.unlink()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        path.name for path in sorted(release_folder.iterdir())
    ]
    for path in release_folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name
    assert len(said) == 7


@pytest.mark.parametrize(
    ("version", "image"),
    [
        pytest.param("v0.1", IMAGE, id="no version at all"),
        pytest.param("99.0.0", IMAGE, id="another version"),
        pytest.param(VERSION, "registry.example.com/team/muster:0.1.0", id="a tag"),
    ],
)
def test_bad_input_is_reported_in_one_line(
    version: str, image: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is written."""
    out = tmp_path / "out"
    assert main(["release", "--version", version, "--image", image, "--out", str(out)]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert not out.exists()


def test_the_commands_of_the_install_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make` hands its settings to these commands."""
    typed = {
        command.arguments[0]: dict(setting.split("=", 1) for setting in command.arguments[1:])
        for command in commands(page.ROOT / "docs/install.md")
        if command.program == "make"
    }
    pushed, released = typed["images"], typed["release"]
    log = _install("podman", tmp_path, monkeypatch)
    assert pushed.keys() == {"REGISTRY", "PUSH"}
    assert main(["images", "--registry", pushed["REGISTRY"], "--push"]) == 0
    assert f"{pushed['REGISTRY']}/muster:{VERSION}" in log.read_text()
    assert released["IMAGE"].startswith(f"{pushed['REGISTRY']}/muster@")
    page.write(tmp_path / "out", released["VERSION"], released["IMAGE"], lambda _name: None)


def _install(builder: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a builder on an otherwise empty path, and return the file that it writes its calls to."""
    log, tools = folder / "calls", folder / "bin"
    tools.mkdir()
    (tools / "basename").symlink_to(str(shutil.which("basename")))
    (tools / builder).write_text(BUILDER.format(log=log, digest=DIGEST, code=0))
    (tools / builder).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    return log


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(f"muster/{name}")
    assert file is not None
    assert isinstance(file, io.BufferedIOBase)
    return file.read()
