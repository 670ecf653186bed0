"""Runs the real kubectl, built from its Go module: tests execute the commands that users type."""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.cluster import modules


class KubectlFailed(AssertionError):
    """kubectl ended with an error; the message contains its standard error."""


def run(*arguments: str, kubeconfig: Path | None = None, given: str = "") -> str:
    """Run kubectl in the root of the repository, like the commands in documents."""
    done = call(*arguments, kubeconfig=kubeconfig, given=given)
    if done.returncode:
        raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def line(words: Sequence[str], kubeconfig: Path) -> str:
    """Run a command line of a document: kubectl, or a pipeline of kubectl and other programs."""
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
    """Run kubectl like `run`, but return the exit status instead of raising."""
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
