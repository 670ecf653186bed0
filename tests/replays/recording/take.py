"""One recording of a story: events in both modes and moments, in three files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster.replay.files import json_lines, read_text, yaml_documents

Object = dict[str, Any]


@dataclass(frozen=True)
class Take:
    """The recording of a story.

    Attributes:
        resource: structured CloudEvents of the adapter in mode Resource, in order of arrival.
        reference: likewise in mode Reference.
        moments: Lists of all objects there were, each with `moment`, its name, in order.
    """

    resource: list[Object]
    reference: list[Object]
    moments: list[Object]

    @classmethod
    def read(cls, folder: Path, story: str) -> Take:
        """Read the recording of a story from a folder."""
        resource, reference, moments = _files(folder, story)
        return cls(_events(resource), _events(reference), yaml_documents(moments, read_text(moments)))

    def write(self, folder: Path, story: str) -> None:
        """Write the recording; equal recordings are equal bytes."""
        resource, reference, moments = _files(folder, story)
        folder.mkdir(parents=True, exist_ok=True)
        resource.write_bytes(_packed(_lines(self.resource)))
        reference.write_text(_lines(self.reference))
        documents = yaml.safe_dump_all(self.moments, sort_keys=False, width=110, explicit_start=True)
        moments.write_bytes(_packed(documents))


def _files(folder: Path, story: str) -> tuple[Path, Path, Path]:
    endings = ("resource.jsonl.gz", "reference.jsonl", "objects.yaml.gz")
    resource, reference, moments = (folder / f"{story}.{ending}" for ending in endings)
    return resource, reference, moments


def _events(path: Path) -> list[Object]:
    return [event for _, event in json_lines(path, read_text(path))]


def _lines(events: Iterable[Object]) -> str:
    return "".join(json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n" for event in events)


def _packed(text: str) -> bytes:
    """Compress without a timestamp, which gzip would add."""
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)
