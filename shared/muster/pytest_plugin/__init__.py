"""The pytest plugin `muster`: fixtures to run steps on recorded events, and on embedded clusters.

Every run of pytest loads this module where Muster is installed, so fixtures import the rest.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from muster.testing import CompareGolden, EmbeddedCluster, ReadRecording, RunningStack

UPDATE = "--muster-update"
OVERLAY = "muster_overlay"
MARKER = "muster"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --muster-update and the setting muster_overlay."""
    group = parser.getgroup("muster", "Muster: steps on recorded events and embedded clusters")
    group.addoption(UPDATE, action="store_true", help="write the files of muster_golden anew")
    help_text = (
        "kustomization folder that muster_stack runs, from the file of this setting; default: Muster's own"
    )
    parser.addini(OVERLAY, help_text, type="paths")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker `muster`."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(controllers=False, admission=True, release='1.37', overlay=None): "
        "options of muster_cluster (the first three) and muster_stack (overlay)",
    )


@pytest.fixture
def muster_recording(request: pytest.FixtureRequest) -> ReadRecording:
    """Return a function that reads a recording: one that comes with Muster by its name, or one in files.

    `muster_recording("torch")`, or `muster_recording("incident.jsonl.gz", objects="incident.yaml.gz")` with
    paths from the folder of the test.
    """
    testing = _testing()
    folder = request.path.parent

    def read(name: str | Path, objects: str | Path | None = None, mode: str = "resource") -> Any:
        if (folder / name).is_file():
            return testing.Recording.read(folder / name, None if objects is None else folder / objects)
        return testing.shipped(str(name), mode)

    return read


@pytest.fixture
def muster_golden(request: pytest.FixtureRequest) -> CompareGolden:
    """Return a function that compares a plan, or any YAML value, with a golden file.

    `muster_golden(plan)` compares with `golden/<name of the test>.yaml` beside the test; a second argument is
    another path from the folder of the test. With --muster-update the file is written instead.
    """
    name = re.sub(r"[^-_.\w]", "-", request.node.name).strip("-.")  # ids may have any character
    default = f"golden/{name}.yaml"
    folder, update = request.path.parent, request.config.getoption(UPDATE)

    def check(value: object, path: str | Path = default) -> None:
        __tracebackhide__ = True
        _compare(folder / path, _text(value), update=update)

    return check


@pytest.fixture
def muster_cluster(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    """Run an embedded API server with Muster's admission policies, and no functions, for one test.

    `@pytest.mark.muster(controllers=True)` runs simulated controllers, scheduler and kubelets beside it;
    `admission=False` leaves the policies out; `release="1.36"` is another Kubernetes.
    """
    options = _options(request, "controllers", "admission", "release")
    with _testing().EmbeddedCluster(**options) as cluster:
        yield cluster


@pytest.fixture
def muster_stack(request: pytest.FixtureRequest) -> Iterator[RunningStack]:
    """Run the local stack for one test: controllers, event sources, broker and functions.

    The functions, triggers and sources are those of an overlay: `@pytest.mark.muster(overlay="deploy")` from
    the folder of the test, else that of the setting `muster_overlay`, else Muster's own.
    """
    overlay = _options(request, "overlay").get("overlay")
    folders = [request.path.parent / overlay] if overlay else request.config.getini(OVERLAY)
    if missing := [folder for folder in folders if not folder.exists()]:
        pytest.fail(f"{missing[0]}: there is no such overlay", pytrace=False)
    with _testing().RunningStack(*folders[:1]) as stack:
        yield stack


def _testing() -> Any:
    try:
        import muster.testing  # noqa: PLC0415 - see above
    except ModuleNotFoundError as error:
        needed = f"Muster's fixtures need the package {error.name}"
        pytest.fail(f"{needed}: pip install 'muster-gangs[testing]'", pytrace=False)
    return muster.testing


def _options(request: pytest.FixtureRequest, *names: str) -> dict[str, Any]:
    """Return the options of the markers `muster` with these names; the nearest marker wins."""
    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers(MARKER))):
        options |= marker.kwargs
    return {name: options[name] for name in names if name in options}


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    as_yaml = getattr(value, "as_yaml", None)
    return str(as_yaml()) if as_yaml else yaml.safe_dump(value, sort_keys=False, width=110)


def _compare(path: Path, text: str, *, update: bool) -> None:
    __tracebackhide__ = True
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    if not path.exists():
        pytest.fail(f"{path} does not exist; pytest {UPDATE} writes it", pytrace=False)
    golden = path.read_text()
    if text != golden:
        lines = difflib.unified_diff(golden.splitlines(), text.splitlines(), str(path), "now", lineterm="")
        diff = "\n".join(lines)
        pytest.fail(f"{path} differs; after a change on purpose run pytest {UPDATE}\n{diff}", pytrace=False)
