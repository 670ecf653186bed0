"""Write a kubeconfig for the embedded API server."""

from __future__ import annotations

import os
from pathlib import Path

from muster.replay.files import PRIVATE, private


def write_kubeconfig(path: Path, text: str) -> None:
    """Write a kubeconfig that nobody but its owner may read, also if the file existed.

    Raises:
        OSError: the file cannot be written, or is a symbolic link.
    """
    with open(path, "w", encoding="utf-8", opener=private) as file:
        os.fchmod(file.fileno(), PRIVATE)
        file.write(text)
