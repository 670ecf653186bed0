"""Files that grow piece by piece and never hold half a piece."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

_GZIP = 16 + zlib.MAX_WBITS


class Pieces:
    """A new file; packed where its name ends in `.gz`, and readable by `zcat` after every piece.

    Args:
        path: of the file.
        overwrite: whether one that is there may go.

    Attributes:
        path: likewise.

    Raises:
        OSError: it cannot be made, or is there already.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        self.path = path
        self._file = path.open("wb" if overwrite else "xb", buffering=0)
        self._pack: Callable[[bytes], bytes] = bytes
        self._end: Callable[[], bytes] = bytes
        if path.suffix == ".gz":
            packer = zlib.compressobj(wbits=_GZIP)
            # A whole block for each piece: 1.3 times the size of one block for all, and nothing is held back.
            self._pack = lambda piece: packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
            self._end = packer.flush

    def append(self, piece: bytes) -> None:
        """Write a piece whole.

        Raises:
            OSError: it could not be written, and nothing of it is in the file.
        """
        self._write(self._pack(piece))

    def close(self) -> None:
        """Nothing more will come."""
        with self._file:
            self._write(self._end())

    def _write(self, content: bytes) -> None:
        whole = self._file.tell()
        try:
            left = memoryview(content)
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            self._file.truncate(whole)
            raise
