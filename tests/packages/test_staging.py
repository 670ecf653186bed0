"""`make stage` empties no folder but its own, and copies no files but those of a step."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from functions import stage
from muster.data import EVENTING

CODE = "function/step.py"


@pytest.fixture(name="own")
def _own(tmp_path: Path) -> Path:
    """A step of one's own."""
    return Path(shutil.copytree(EVENTING / "examples/label_racks", tmp_path / "mine" / "label_racks"))


@pytest.fixture(name="repository")
def _repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what `make stage` reads, which is used instead of this repository; it has other files too."""
    copied = tmp_path / "repository"
    for folder in ("functions", "shared/muster"):
        shutil.copytree(stage.FUNCTIONS.parent / folder, copied / folder)
    for name in ("pyproject.toml", "requirements.txt"):
        shutil.copy(stage.FUNCTIONS.parent / name, copied)
    (copied / "not-committed.txt").write_text("mine")
    monkeypatch.setattr(stage, "FUNCTIONS", copied / "functions")
    monkeypatch.setattr(stage, "TEMPLATE", copied / "functions" / "template")
    monkeypatch.setattr(stage, "MUSTER", copied / "shared" / "muster")
    monkeypatch.chdir(copied)
    return copied


def files_below(folder: Path) -> list[Path]:
    """All files of a folder, and of its folders."""
    return sorted(folder.rglob("*"))


@pytest.mark.parametrize(
    "out",
    [
        pytest.param("", id="nothing"),
        pytest.param(".", id="the repository"),
        pytest.param("..", id="its parent"),
        pytest.param("link", id="a link to the repository"),
        pytest.param("shared", id="a folder of others"),
        pytest.param("functions/new/..", id="the folder of the functions"),
        pytest.param("functions/create_workload/build", id="within a function"),
        pytest.param("shared/muster/build", id="within the package"),
        pytest.param("../mine", id="around a step of one's own"),
        pytest.param("../mine/label_racks/build", id="within a step of one's own"),
        pytest.param("not-committed.txt", id="a file"),
        pytest.param("loop", id="a link to itself"),
    ],
)
def test_no_folder_is_emptied_that_has_other_files(
    out: str,
    repository: Path,
    own: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line, and nothing is changed: OUT= once deleted the working tree."""
    (repository / "link").symlink_to(repository)
    (repository / "loop").symlink_to("loop")
    before = files_below(repository.parent)
    assert stage.main([out, str(own)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert files_below(repository.parent) == before


def test_make_says_so(tmp_path: Path) -> None:
    """With the setting as it was given."""
    (tmp_path / "file").write_text("")
    command = ["make", "-s", "stage", f"OUT={tmp_path}"]
    ran = subprocess.run(command, cwd=stage.FUNCTIONS.parent, check=False, capture_output=True, text=True)
    assert ran.returncode != 0
    assert ran.stderr.startswith(f"OUT={tmp_path}: has files that")
    assert (tmp_path / "file").exists()


@pytest.mark.parametrize("before", ["no folder", "an empty folder", "its own folder"])
def test_a_folder_of_its_own_is_written(before: str, tmp_path: Path, own: Path) -> None:
    """Again and again: a project of a function that is gone goes too."""
    out = tmp_path / "out"
    if before == "an empty folder":
        out.mkdir()
    if before == "its own folder":
        assert stage.main([str(out)]) == 0
        (out / "patch_pods").rename(out / "former")
    assert stage.main([str(out), str(own)]) == 0
    assert (out / "label_racks" / CODE).is_file()
    assert not (out / "former").exists()


def _without_code(own: Path) -> None:
    shutil.rmtree(own / "function")


def _linked(own: Path) -> None:
    (own.parent / "secret").write_text("")
    (own / "function" / "notes.txt").symlink_to(own.parent / "secret")


def _named_as_muster(own: Path) -> None:
    own.rename(own.parent / "patch_pods")
    own.symlink_to("patch_pods")


BAD_STEPS: dict[str, Callable[[Path], object]] = {
    "no func.yaml": lambda own: (own / "func.yaml").unlink(),
    "an empty func.yaml": lambda own: (own / "func.yaml").write_text(""),
    "a func.yaml that is none": lambda own: (own / "func.yaml").write_text("{["),
    "a func.yaml of bytes": lambda own: (own / "func.yaml").write_bytes(b"\xff"),
    "no code": _without_code,
    "code that is none": lambda own: (own / CODE).write_text("def"),
    "dependencies that are none": lambda own: (own / "pyproject.toml").write_text("project = 3"),
    "a dependency that is a number": lambda own: (own / "pyproject.toml").write_text(
        "[project]\ndependencies = [3]"
    ),
    "a pyproject.toml that is none": lambda own: (own / "pyproject.toml").write_text("["),
    "the name of a function": _named_as_muster,
    "a link to a file elsewhere": _linked,
    "a link to its own folder": lambda own: (own / "loop").symlink_to(own),
}


@pytest.mark.parametrize("fault", BAD_STEPS)
def test_a_step_that_cannot_be_staged_is_one_line(
    fault: str, own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the file; what a link leads to is not copied."""
    BAD_STEPS[fault](own)
    assert stage.main([str(tmp_path / "out"), str(own)]) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert not (tmp_path / "out/label_racks/function/notes.txt").exists()


@pytest.mark.parametrize(
    ("docstring", "description"),
    [
        pytest.param(r'r"""Match \d and "x"."""', r'Match \d and "x".', id="backslash and quotes"),
        pytest.param('"""One\\udc00line\\x7f.\n\nMore."""', "One line .", id="characters that TOML lacks"),
        pytest.param("", "", id="none"),
    ],
)
def test_the_description_is_the_first_line_of_the_code(
    docstring: str, description: str, own: Path, tmp_path: Path
) -> None:
    """In a pyproject.toml that can be read, whatever it says."""
    (own / CODE).write_text(docstring)
    stage.stage(own, tmp_path / "project")
    project = tomllib.loads((tmp_path / "project" / "pyproject.toml").read_text())["project"]
    assert project["description"] == description
