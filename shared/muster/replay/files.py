"""Reading what people hand to `muster`: JSON and YAML files, with the place of whatever is wrong in them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from muster.yaml_files import SafeLoader


class BadFileError(Exception):
    """A file, or something in it, cannot be used; the message is one line and begins with the place."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(f"{place}: {' '.join(message.split())}")


class _Loader(SafeLoader):
    """Times stay the strings that the API server sent, as they do in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in SafeLoader.yaml_implicit_resolvers.items()
}


def read_text(path: Path) -> str:
    """The text of a file, unpacked where its name ends in `.gz`.

    Raises:
        BadFileError: it cannot be read, or is not UTF-8.
    """
    try:
        stored = path.read_bytes()
        return (gzip.decompress(stored) if path.suffix == ".gz" else stored).decode()
    except UnicodeDecodeError as error:
        raise BadFileError(str(path), f"is not UTF-8 at byte {error.start}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise BadFileError(str(path), "cannot be unpacked") from None
    except OSError as error:
        raise BadFileError(str(path), error.strerror or "cannot be read") from None


def kind_of(path: Path) -> str:
    """The ending that says what a file is: `.jsonl` of `events.jsonl.gz`."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def yaml_documents(path: Path, text: str) -> list[Any]:
    """The documents of a YAML stream, of which JSON is one; empty ones are left out.

    Raises:
        BadFileError: it is not YAML.
    """
    try:
        return [found for found in yaml.load_all(text, _Loader) if found is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise BadFileError(place, f"is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFileError(str(path), f"is not YAML: {error}") from None


def json_lines(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Each line of a JSON Lines file with its place, `events.jsonl:3`.

    Raises:
        BadFileError: a line is not JSON.
    """
    # Not splitlines: a string in JSON may hold what else Unicode takes for an end of line.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"{path}:{number}"
            try:
                yield place, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise BadFileError(place, f"is not JSON: {error}") from None
