"""Put the objects of manifest files into an embedded API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster.objects import yaml_files
from muster.objects.memory import TEXT_SHARE, DataLimit
from muster.objects.meta import overlong_field
from muster.objects.text import has_more_values, json_bytes, text_bytes
from muster.simulator.apiserver import ApiServer
from muster.simulator.apiserver.status import ApiError

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
ORDER = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "ValidatingAdmissionPolicy",
    "MutatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBinding",
)
"""The kinds that come first, in this order; all others follow in the order of the files."""

MOST_OBJECT_BYTES, MOST_OBJECT_VALUES = 3 * 1024 * 1024, 100_000
"""The largest object that is loaded: the API server reads no larger body (`MaxRequestBodyBytes`).

An object of 1.5 MiB, the most that etcd stores, has some 60,000 values; 900,000 wrong ones took gigabytes."""


class ManifestError(ValueError):
    """A manifest that cannot be loaded: `FILE:LINE: what is wrong`."""


@dataclass(frozen=True)
class Manifest:
    """An object in a file.

    Attributes:
        path: the file.
        line: the line in which the object begins, from 1.
        object: the parsed object.
    """

    path: Path
    line: int
    object: Any

    @property
    def kind(self) -> str:
        """The kind of the object; empty if it is none."""
        return str(self.object.get("kind", "")) if isinstance(self.object, dict) else ""

    def error(self, message: str) -> ManifestError:
        """Return an error that names the file and the line."""
        return ManifestError(f"{self.path}:{self.line}: {message}")


MOST_BYTES = 128 * 1024 * 1024
"""The most bytes of a manifest file, and the most memory of its text: thirty thousand Jobs of JobSets."""
_REPORTED = 100
"""`load` reports each so many objects."""


def load(
    server: ApiServer, paths: Iterable[Path], *, loading: Callable[[str], object] = lambda _step: None
) -> int:
    """Apply the objects of files and folders to a server, with admission and validation; return their number.

    Folders are searched at any depth. Kustomizations are skipped; what they list is a file of the folder.

    Args:
        server: where to put the objects.
        paths: files and folders.
        loading: called with each file before it is read, and with `100 of 26120 objects` and so on.

    Raises:
        ManifestError: a path does not exist or has no manifests, a file is not YAML, or the server refuses an
            object.
        OSError: a file cannot be read.
    """
    found: list[Manifest] = []
    limit = DataLimit()
    for file in (file for path in paths for file in _files(path)):
        loading(str(file))
        found += _objects(file, limit)
    found = [manifest for manifest in found if manifest.kind not in {"Kustomization", "Component"}]
    found.sort(key=lambda manifest: ORDER.index(manifest.kind) if manifest.kind in ORDER else len(ORDER))
    found.reverse()
    total = len(found)
    for number in range(total):
        if number % _REPORTED == 0:
            loading(f"{number} of {total} objects")
        _apply(server, found.pop())  # which the server copies
    return total


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise ManifestError(f"{path}: No such file or folder")
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    if not files:
        raise ManifestError(f"{path}: has no file that ends in .yaml, .yml or .json")
    return files


def _objects(path: Path, limit: DataLimit) -> Iterator[Manifest]:
    """Yield the objects of a file, those of a List each."""
    try:
        text = _read(path, limit)
        documents = yaml_files.load_all(text, limit)
        lines = list(yaml_files.lines_of_documents(text))
    except UnicodeDecodeError:
        raise ManifestError(f"{path}: is not UTF-8 text") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        raise ManifestError(f"{place}: {getattr(error, 'problem', None) or error}") from None
    for document, (line, lines_of_items) in zip(documents, lines, strict=True):
        if isinstance(document, dict) and isinstance(document.get("items"), list):
            items = document["items"]
            known = lines_of_items if len(lines_of_items) == len(items) else [line] * len(items)
            yield from (Manifest(path, begin, obj) for begin, obj in zip(known, items, strict=True))
        else:
            yield Manifest(path, line, document)


def _read(path: Path, limit: DataLimit) -> str:
    """Return the text of a file; of a device that never ends, only so much as shows that it is too large."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    limit.take(len(content) // TEXT_SHARE)
    if text_bytes(content) > MOST_BYTES:
        raise ManifestError(f"{path}: has more than {MOST_BYTES // 1024**2} MiB")
    return content.decode("utf-8-sig")


def _apply(server: ApiServer, manifest: Manifest) -> None:
    obj = manifest.object
    if not isinstance(obj, dict) or not obj.get("apiVersion") or not manifest.kind:
        raise manifest.error("is no Kubernetes object: apiVersion or kind is missing")
    text = json_bytes(obj)
    if len(text) > MOST_OBJECT_BYTES or has_more_values(text, MOST_OBJECT_VALUES):
        raise manifest.error(
            f"{manifest.kind}: has more than {MOST_OBJECT_BYTES} bytes of JSON or {MOST_OBJECT_VALUES} values"
        )
    long = overlong_field(obj)
    if long is not None:
        raise manifest.error(f"{long[0]} has more than {long[1]} characters")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise manifest.error(f"{manifest.kind}: metadata.name is missing")
    for field in ("name", "namespace"):
        if not isinstance(metadata.get(field, ""), str):
            raise manifest.error(f"{manifest.kind}: metadata.{field} is no string")
    try:
        server.apply(obj)
    except LookupError:
        kind = f"{manifest.kind} of {obj['apiVersion']}"
        raise manifest.error(f"{kind} is not served, and no CustomResourceDefinition defines it") from None
    except ApiError as error:
        raise manifest.error(" ".join(error.message.split())) from None
