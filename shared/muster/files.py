"""Paths of files that are not modules: manifests of eventing/, func projects of functions/, recordings."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

_PACKAGE = Path(__file__).parent
_CHECKOUT = _PACKAGE.parents[1]
_ROOT = _PACKAGE / "data" if (_PACKAGE / "data").is_dir() else _CHECKOUT

EVENTING = _ROOT / "eventing"
"""The folder eventing/ of a checkout, or muster/data/eventing of an installed package."""

FUNCTIONS = _ROOT / "functions"
"""The folder functions/ of a checkout, or muster/data/functions of an installed package."""

RECORDINGS = _ROOT / "recordings" if _ROOT.name == "data" else _CHECKOUT / "tests" / "replays" / "recordings"
"""Muster's own recordings: tests/replays/recordings of a checkout, muster/data/recordings when installed."""

DEEPEST_FOLDER = 100
"""How deep a folder is searched: `Path.rglob` fails some hundred levels below."""


class FolderError(ValueError):
    """A folder is gone or nested too deeply, or has a link to a file outside; the message is one line."""


def files_below(folder: Path, suffixes: Collection[str]) -> list[Path]:
    """Return the files in a folder at any depth that have one of the suffixes, sorted.

    Links to folders are not followed, and folders that may not be read are skipped.

    Raises:
        FolderError: it is nested more than DEEPEST_FOLDER deep, or a file is a link to one outside: that may
            be a secret, which errors would quote, or `/proc/kmsg`, which waits for ever. Or a folder is gone,
            or what a link leads to cannot be looked at.
    """
    try:
        root = folder.resolve()
    except OSError as error:
        raise FolderError(f"{folder}: {error.strerror}") from None
    found: list[Path] = []
    rest = [(folder, 0)]
    while rest:
        inner, depth = rest.pop()
        if depth > DEEPEST_FOLDER:
            raise FolderError(f"{folder}: is nested more than {DEEPEST_FOLDER} folders deep")
        try:
            with os.scandir(inner) as listed:
                entries = list(listed)
        except PermissionError:
            continue
        except OSError as error:
            raise FolderError(f"{inner}: {error.strerror}") from None
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                rest.append((path, depth + 1))
            elif path.suffix in suffixes and _is_file_within(root, path, folder):
                found.append(path)
    return sorted(found)


def _is_file_within(root: Path, path: Path, folder: Path) -> bool:
    """Whether a path of a folder is a file, and no link to one outside of the folder, which is refused."""
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(root):
        raise FolderError(f"{path}: is a link to a file outside of {folder}")
    try:
        return path.is_file()
    except OSError as error:
        raise FolderError(f"{path}: {error.strerror}") from None
