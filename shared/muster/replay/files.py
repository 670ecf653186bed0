"""Read JSON and YAML files with the location of each error, and write files that grow by whole chunks."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import yaml

from muster.objects import yaml_files
from muster.objects.memory import MOST_MEMORY, TEXT_SHARE, DataLimit, TooMuchDataError
from muster.objects.text import cut_to, has_more_values, text_bytes

_GZIP = 16 + zlib.MAX_WBITS
_CHUNK = 1024 * 1024

MOST_BYTES = 256 * 1024 * 1024
"""The most that is read of a file, or of what it unpacks to: fifty thousand Jobs. 10 MB may be 10 GB."""
TEXT_BYTES = 128 * 1024 * 1024
"""The most memory of a text that is parsed as a whole, which takes up to six times as much: that of a YAML or
JSON file, or of a line of JSON Lines. One emoji makes each character take four bytes."""
MOST_VALUES = 2_000_000
"""The most values of a JSON text, which take up to 300 bytes each: ten thousand Jobs of JobSets."""
VALUE_BYTES = MOST_MEMORY // MOST_VALUES
"""The bytes of the limit of a command that must be left for each value of a JSON text before it is parsed."""

_LINE = re.compile(rb"[^\s][^\n]*")
"""A line that is not blank, without the blanks before it."""
_OTHER_LINE = re.compile(rb"^(?:[^{\s]|[^\S\n]+\S)", re.MULTILINE)
"""The beginning of a line that is not blank and begins with no brace."""

PRIVATE = 0o600
"""The mode of files that contain objects of a cluster, or what gives access to one."""


def private(path: str, flags: int) -> int:
    """Open a file that nobody but its owner may read; for `open`.

    No symbolic link: what it leads to may be somebody else's choice. No device, whose mode is for all, and no
    FIFO, which waits for a reader.

    Raises:
        OSError: the file cannot be opened, or is no regular one.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, PRIVATE)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "Not a regular file", path)
    os.fchmod(descriptor, PRIVATE)
    return descriptor


_LOCATION_LENGTH, _MESSAGE_LENGTH = 1024, 4096
"""The most characters of the location and message of an error: keys of a file may have megabytes."""


class BadFileError(Exception):
    """A file or a value in it is invalid; the message is one line that begins with the location."""

    def __init__(self, location: str, message: str) -> None:
        line = " ".join(cut_to(message, _MESSAGE_LENGTH).split())
        super().__init__(f"{cut_to(location, _LOCATION_LENGTH)}: {line}")


class TooMuchReadError(BadFileError):
    """The data of a file and of those before it take more memory than a command may use for them."""


@contextmanager
def located(location: str) -> Iterator[None]:
    """Turn TooMuchDataError into TooMuchReadError with the location."""
    try:
        yield
    except TooMuchDataError as error:
        raise TooMuchReadError(location, str(error)) from None


def read_bytes(path: Path) -> bytes:
    """Return the content of a file, unpacked if its name ends in `.gz`.

    Raises:
        BadFileError: the file cannot be read, or has more than MOST_BYTES.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = _read_at_most(file, MOST_BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise BadFileError(str(path), "cannot be decompressed") from None
    except OSError as error:
        raise BadFileError(str(path), error.strerror or "cannot be read") from None
    if len(content) > MOST_BYTES:
        raise BadFileError(str(path), f"has more than {MOST_BYTES} bytes")
    return content


def _read_at_most(file: gzip.GzipFile | io.BufferedReader, most: int) -> bytes:
    """Return what a file has, or the first bytes of it; no buffer for all of them is reserved."""
    content = io.BytesIO()
    while (left := most - content.tell()) and (chunk := file.read(min(left, _CHUNK))):
        content.write(chunk)
    return content.getvalue()


def read_text(path: Path, limit: DataLimit | None = None) -> str:
    """Return the text of a file, unpacked if its name ends in `.gz`.

    Args:
        path: of the file.
        limit: of the data of all files of a command.

    Raises:
        BadFileError: the file cannot be read, is too large, or is not UTF-8.
        TooMuchReadError: nothing is left of the limit.
    """
    content = read_bytes(path)
    if limit is not None:
        with located(str(path)):
            limit.take(len(content) // TEXT_SHARE)
    return decoded(str(path), content)


def decoded(location: str, content: bytes) -> str:
    """Return the text of a file or line.

    Raises:
        BadFileError: it is not UTF-8, or takes more memory than TEXT_BYTES.
    """
    if text_bytes(content) > TEXT_BYTES:
        raise BadFileError(location, f"takes more than {TEXT_BYTES} bytes of memory")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadFileError(location, f"is not UTF-8 at byte {error.start}") from None


def format_suffix(path: Path) -> str:
    """Return the suffix of a path without `.gz`: `.jsonl` of `events.jsonl.gz`."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def yaml_documents(path: Path, text: str, limit: DataLimit | None = None) -> list[Any]:
    """Return the documents of a YAML or JSON stream, without empty documents.

    Args:
        path: of the file.
        text: of the file.
        limit: of the data of all files of a command; None for one of its own.

    Raises:
        BadFileError: the text is not YAML.
        TooMuchReadError: the data take more memory than the limit.
    """
    try:
        with located(str(path)):
            return yaml_files.load_all(text, limit)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        location = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise BadFileError(location, f"is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFileError(str(path), f"is not YAML: {error}") from None


def are_json_lines(content: bytes) -> bool:
    """Whether a content has several lines that are not blank, all of which begin with a brace."""
    return not _OTHER_LINE.search(content) and len(list(islice(_LINE.finditer(content), 2))) > 1


def json_lines(
    path: Path, content: bytes, limit: DataLimit | None = None, longest: int = MOST_BYTES
) -> Iterator[tuple[str, Any]]:
    """Yield the location, `events.jsonl:3`, and the value of each line of JSON Lines that is not blank.

    Args:
        path: of the file.
        content: of the file.
        limit: of the data of all files of a command; None for one of its own.
        longest: bytes of a line.

    Raises:
        BadFileError: a line is not JSON, is too large, or has too many values.
        TooMuchDataError: what is left of the limit is too little for a line.
    """
    number, end = 1, 0
    for line in _LINE.finditer(content):
        number += content.count(b"\n", end, line.start())
        end = line.start()
        location = f"{path}:{number}"
        if line.end() - end > longest:
            raise BadFileError(location, f"has more than {longest} bytes")
        try:
            yield location, json_value(decoded(location, line[0]), limit)
        except (ValueError, RecursionError) as error:
            raise BadFileError(location, f"is not JSON: {error}") from None


def json_value(text: str, limit: DataLimit | None = None) -> Any:
    """Return the value of a JSON text.

    Args:
        text: the text.
        limit: of the data of all files of a command; None for one of its own. Nothing is taken of it.

    Raises:
        ValueError: the text is not JSON, or has more values than MOST_VALUES.
        TooMuchDataError: what is left of the limit is too little for its values.
    """
    limit = limit or DataLimit()
    most = min(MOST_VALUES, limit.left // VALUE_BYTES)
    if has_more_values(text.encode(errors="replace"), most):
        limit.require((most + 1) * VALUE_BYTES)
        raise ValueError(f"it has more than {MOST_VALUES} values")
    return json.loads(text)


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
        # For its owner alone: recordings contain objects of a cluster.
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
