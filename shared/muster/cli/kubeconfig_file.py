"""Write a kubeconfig for the embedded API server."""

from __future__ import annotations

from pathlib import Path

from muster.replay.files import private


def write_kubeconfig(path: Path, text: str) -> None:
    """Write a kubeconfig that nobody but its owner may read, also if the file existed.

    Raises:
        OSError: the file cannot be written, or is no regular one.
    """
    with open(path, "w", encoding="utf-8", opener=private) as file:
        file.write(text)
