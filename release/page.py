"""Writes the files that a release page carries: `make release`. The same input gives the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from release.chart import OVERLAYS, chart, manifest_text

ROOT = Path(__file__).parents[1]
SUMS = "SHA256SUMS"
EPOCH = 1580601600
"""The time of every file in the archives, as that of hatchling (2020-02-02)."""

_IMAGE = re.compile(r"[a-z0-9][a-z0-9.:/_-]*@sha256:[0-9a-f]{64}")


class ReleaseError(ValueError):
    """A release cannot be made as asked; the message is one line for who asked."""


def project_version() -> str:
    """Return the version that pyproject.toml names."""
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return version


def write(out: Path, version: str, image: str, say: Callable[[str], None]) -> list[Path]:
    """Write the files of a release, in place of those of an earlier one.

    Args:
        out: their folder; it is made if need be, and other files in it stay.
        version: MAJOR.MINOR.PATCH, the one in pyproject.toml.
        image: the image of all functions, `REPOSITORY@sha256:DIGEST`.
        say: told what is written next.

    Returns:
        The files; the last one has the checksums of the others.

    Raises:
        ReleaseError: version or image is no such thing, or the wheel cannot be built.
    """
    _check(version, image)
    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("muster[-_.]*"), *out.glob(SUMS)]:
        old.unlink()
    written: list[Path] = []
    for name, content in _files(version, image):
        say(name)
        written.append(out / name)
        written[-1].write_bytes(content)
    say("the wheel")
    written.append(_wheel(out))
    sums = out / SUMS
    sums.write_text(
        "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(written))
    )
    return [*written, sums]


def _check(version: str, image: str) -> None:
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", version):
        raise ReleaseError(f"VERSION={version}: must be MAJOR.MINOR.PATCH, as {project_version()}")
    if version != project_version():
        raise ReleaseError(
            f"VERSION={version}: pyproject.toml has version {project_version()}; change it there first"
        )
    if not _IMAGE.fullmatch(image):
        raise ReleaseError(
            f"IMAGE={image}: must be REPOSITORY@sha256:DIGEST, as `make images REGISTRY=... PUSH=1` prints it"
        )


def _files(version: str, image: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file but the wheel."""
    for overlay in OVERLAYS:
        yield f"muster-{overlay}.yaml", manifest_text(overlay, version, image).encode()
    yield f"muster-{version}.tgz", archive("muster", chart(version, image))


def archive(folder: str, files: Mapping[str, bytes]) -> bytes:
    """Return a gzipped tar archive of files below a folder, with fixed times, owners and order."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=EPOCH) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(f"{folder}/{name}")
            entry.size, entry.mtime = len(files[name]), EPOCH
            tar.addfile(entry, io.BytesIO(files[name]))
    return packed.getvalue()


def _wheel(out: Path) -> Path:
    """Build the wheel in a folder of its own, since `out` may have others, and move it to `out`."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
            cwd=ROOT,
            env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ReleaseError(f"the wheel cannot be built: {' '.join(done.stderr.split()[-40:])}")
        (wheel,) = Path(folder).glob("*.whl")
        return Path(shutil.move(wheel, out / wheel.name))
