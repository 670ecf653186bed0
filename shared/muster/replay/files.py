"""Read JSON and YAML files with the location of each error."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from muster.objects import yaml_files


class BadFileError(Exception):
    """A file or a value in it is invalid; the message is one line that begins with the location."""

    def __init__(self, location: str, message: str) -> None:
        super().__init__(f"{location}: {' '.join(message.split())}")


def read_text(path: Path) -> str:
    """Return the text of a file, unpacked if its name ends in `.gz`.

    Raises:
        BadFileError: the file cannot be read, or is not UTF-8.
    """
    try:
        content = path.read_bytes()
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    except UnicodeDecodeError as error:
        raise BadFileError(str(path), f"is not UTF-8 at byte {error.start}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise BadFileError(str(path), "cannot be decompressed") from None
    except OSError as error:
        raise BadFileError(str(path), error.strerror or "cannot be read") from None


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


def json_lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield the location, `events.jsonl:3`, and the value of each line of JSON Lines that is not blank.

    Raises:
        BadFileError: a line is not JSON.
    """
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{path}:{number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadFileError(f"{path}:{number}", f"is not JSON: {error}") from None
