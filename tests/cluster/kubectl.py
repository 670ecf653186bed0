"""The real kubectl, built as everything here is; what users type is what tests run."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import modules


class KubectlFailed(AssertionError):
    """It ended with an error; the message has its words."""


def run(*arguments: str, kubeconfig: Path | None = None, given: str = "") -> str:
    """Runs kubectl from the root of the repository, as the documents do.

    Args:
        arguments: what follows `kubectl`.
        kubeconfig: the cluster; None for commands that need none.
        given: its standard input.

    Returns:
        What it printed.

    Raises:
        KubectlFailed: it ended with an error.
    """
    done = call(*arguments, kubeconfig=kubeconfig, given=given)
    if done.returncode:
        raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def line(words: Sequence[str], kubeconfig: Path) -> str:
    """Runs a line of a document: kubectl, or kubectl and other programs with pipes between them.

    Returns:
        What the last program printed.

    Raises:
        KubectlFailed: kubectl ended with an error.
        subprocess.CalledProcessError: another program did.
    """
    printed = ""
    for piped, part in itertools.groupby(words, lambda word: word == "|"):
        program, *arguments = part
        if program == "kubectl":
            printed = run(*arguments, kubeconfig=kubeconfig, given=printed)
        elif not piped:
            done = subprocess.run(
                [program, *arguments], input=printed, capture_output=True, text=True, check=True
            )
            printed = done.stdout
    return printed


def call(
    *arguments: str, kubeconfig: Path | None = None, given: str = ""
) -> subprocess.CompletedProcess[str]:
    """Likewise, for commands that may end with an error."""
    return subprocess.run(
        [str(modules.build(modules.KUBECTL)), *arguments],
        cwd=modules.REPOSITORY,
        env={**os.environ, "KUBECONFIG": str(kubeconfig or os.devnull)},
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
