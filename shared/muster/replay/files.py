"""Read JSON and YAML files with the location of each error, and write files that grow by whole chunks."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from muster.objects import yaml_files

PRIVATE = 0o600
"""The mode of files that contain objects of a cluster, or what gives access to one."""

_GZIP = 16 + zlib.MAX_WBITS


def private(path: str, flags: int) -> int:
    """Open a file that nobody but its owner may read; for `open`."""
    return os.open(path, flags, PRIVATE)


class BadFileError(Exception):
    """A file or a value in it is invalid; the message is one line that begins with the location."""

    def __init__(self, location: str, message: str) -> None:
        super().__init__(f"{location}: {' '.join(message.split())}")


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked if its name ends in `.gz`.

    Raises:
        BadFileError: the file cannot be read.
    """
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise BadFileError(str(path), "cannot be decompressed") from None
    except OSError as error:
        raise BadFileError(str(path), error.strerror or "cannot be read") from None


def read_text(path: Path) -> str:
    """Return the text of a file, unpacked if its name ends in `.gz`.

    Raises:
        BadFileError: the file cannot be read, or is not UTF-8.
    """
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise BadFileError(str(path), f"is not UTF-8 at byte {error.start}") from None


def format_suffix(path: Path) -> str:
    """Return the suffix of a path without `.gz`: `.jsonl` of `events.jsonl.gz`."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def yaml_documents(path: Path, text: str) -> list[Any]:
    """Return the documents of a YAML or JSON stream, without empty documents.

    Raises:
        BadFileError: the text is not YAML.
    """
    try:
        return yaml_files.load_all(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        location = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise BadFileError(location, f"is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFileError(str(path), f"is not YAML: {error}") from None


def json_lines(path: Path, content: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the location, `events.jsonl:3`, and the value of each line of JSON Lines that is not blank.

    Raises:
        BadFileError: a line is not JSON.
    """
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            try:
                yield f"{path}:{number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadFileError(f"{path}:{number}", f"is not JSON: {error}") from None


class AppendedFile:
    """A new file to which chunks are appended, each entirely or not at all.

    If its name ends in `.gz` it is compressed, and `zcat` can read it after every chunk.

    Args:
        path: of the file.
        overwrite: whether to replace an existing file.

    Attributes:
        path: of the file.

    Raises:
        OSError: the file cannot be created, or exists.
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        self.path = path
        self._file = open(path, "wb" if overwrite else "xb", buffering=0, opener=private)  # noqa: SIM115 - closed by `close`
        self._encode: Callable[[bytes], bytes] = bytes
        self._trailer: Callable[[], bytes] = bytes
        if path.suffix == ".gz":
            packer = zlib.compressobj(wbits=_GZIP)
            # A flush per chunk makes the file 1.3 times as large, and leaves no chunk in the buffer.
            self._encode = lambda chunk: packer.compress(chunk) + packer.flush(zlib.Z_SYNC_FLUSH)
            self._trailer = packer.flush

    def append(self, chunk: bytes) -> None:
        """Write a chunk.

        Raises:
            OSError: it could not be written; the file has no part of it.
        """
        self._write(self._encode(chunk))

    def close(self) -> None:
        """Write the end of the compressed stream, if any, and close the file."""
        with self._file:
            self._write(self._trailer())

    def _write(self, content: bytes) -> None:
        size = self._file.tell()
        try:
            remaining = memoryview(content)
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except OSError:
            self._file.truncate(size)
            raise
