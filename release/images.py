"""Builds the image of all functions with podman, docker or buildah, and pushes it: `make images`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from release.page import ROOT, ReleaseError

BUILDERS = ("podman", "docker", "buildah")
"""The first of these on the path is used."""


def build(registry: str, version: str, say: Callable[[str], None], *, push: bool) -> str:
    """Build the image `REGISTRY/muster:VERSION`; the builder prints what it does.

    Returns:
        The image: by its tag; by its digest if it was pushed.

    Raises:
        ReleaseError: no builder is installed, the registry is a URL, or the builder failed.
    """
    if not registry or "://" in registry:
        raise ReleaseError(f"REGISTRY={registry}: must be HOST or HOST/PATH, without https://")
    builder = next((name for name in BUILDERS if shutil.which(name)), None)
    if builder is None:
        raise ReleaseError(f"one of {', '.join(BUILDERS)} must be on PATH to build an image")
    image = f"{registry}/muster:{version}"
    say(f"building {image} with {builder}")
    _run(builder, "build", "--file", "Containerfile", "--tag", image, ".")
    if not push:
        return image
    say(f"pushing {image}")
    return f"{registry}/muster@{_push(builder, image)}"


def _push(builder: str, image: str) -> str:
    """Push an image, and return the digest that the registry has it under.

    Raises:
        ReleaseError: the builder failed, or names no digest.
    """
    if builder == "docker":
        _run(builder, "push", image)
        printed = _run(builder, "image", "inspect", "--format", '{{join .RepoDigests " "}}', image, read=True)
        repository = image.rpartition(":")[0]
        digests = [known.partition("@")[2] for known in printed.split() if known.startswith(f"{repository}@")]
        if not digests:
            raise ReleaseError(f"docker names no digest of {repository}")
        return digests[0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "digest")
        _run(builder, "push", "--digestfile", str(file), image)
        return file.read_text().strip()


def _run(*command: str, read: bool = False) -> str:
    """Run a builder in the root of the repository, and return what it printed if that is asked for."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE if read else None, text=True, check=False)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command[:2])} ended with exit code {done.returncode}")
    return done.stdout or ""
