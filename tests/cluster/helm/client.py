"""Runs the real helm, built from its Go module."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.cluster import modules


class HelmFailed(AssertionError):
    """Helm ended with an error; the message contains its standard error."""


def run(*arguments: str, kubeconfig: Path | None = None) -> str:
    """Run helm in the root of the repository, without files of the user's own.

    Args:
        arguments: arguments after `helm`.
        kubeconfig: the cluster; None for commands that need none.

    Returns:
        Standard output.
    """
    own = {f"HELM_{name}_HOME": str(modules.cache_folder() / "helm") for name in ("CACHE", "CONFIG", "DATA")}
    done = subprocess.run(
        [str(modules.build(modules.HELM)), *arguments],
        cwd=modules.REPOSITORY,
        env={**os.environ, **own, "KUBECONFIG": str(kubeconfig or os.devnull)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    if done.returncode:
        raise HelmFailed(f"helm {' '.join(arguments)}: {done.stderr}")
    return done.stdout
