"""Where `muster record` gets its events from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

from muster import manifests
from muster.cli.bad_input import BadInput, told_in_one_line
from muster.cli.loopback import endpoint, keep_to_this_machine
from muster.cluster.client import Client
from muster.local.serving import Served
from muster.replay import sink
from muster.replay.files import read_text, yaml_documents
from muster.replay.recording import Recording
from muster.replay.redaction import is_secret
from muster.simulator.broker import CloudEvent
from muster.simulator.source import Source, SourceSpec, start_all

BEGINS_WITHIN = 10.0
"""Seconds; a watch of an API that is not served yet is waited for no longer."""

WATCH_SECONDS = 5
"""How long one watch request lasts."""


class Origin(Protocol):
    """Where events come from."""

    def into(self, recording: Recording) -> AbstractContextManager[str]:
        """Record them for as long as the block lasts; in words what is recorded."""
        ...


@dataclass(frozen=True)
class Door:
    """An address that somebody sends to."""

    host: str
    port: int

    @classmethod
    def at(cls, text: str, *, beyond: bool) -> Door:
        """The door of `HOST:PORT`.

        Raises:
            BadInput: it is none, or open to others though nobody said that it may be.
        """
        host, port = endpoint("--listen", text)
        keep_to_this_machine("--listen", host, "anybody could write into the file", beyond=beyond)
        return cls(host, port)

    @contextmanager
    def into(self, recording: Recording) -> Iterator[str]:
        """Answer 202 to whoever sends an event there."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        try:
            served = Served(
                sink.app(recording.take), "sink", self.host, self.port, max_request_body_size=sink.BODY_LIMIT
            )
        except OSError as error:
            raise BadInput(f"--listen {host}:{self.port}: {os.strerror(error.errno or 0)}") from None
        try:
            yield f"what is sent to http://{host}:{served.port}"
        finally:
            served.stop()


@dataclass(frozen=True)
class Watched:
    """A cluster, and the sources that say which of its kinds are watched."""

    client: Client
    specs: tuple[SourceSpec, ...]

    @classmethod
    def by(cls, client: Client, sources: Path) -> Watched:
        """The cluster of a client, watched by the sources of a kustomization or file.

        Raises:
            BadInput: there is none that could be used, or one watches Secrets.
            ClusterError: the API server does not answer.
        """
        client.served_versions("apps")
        return cls(client, _specs(sources))

    @contextmanager
    def into(self, recording: Recording) -> Iterator[str]:
        """Take what Knative's ApiServerSource would send."""

        def take(headers: Mapping[str, str], body: bytes) -> int:
            recording.take(CloudEvent.from_http(headers, body))
            return HTTPStatus.ACCEPTED

        url = self.client.url
        sources = [
            Source(spec, self.client, take, api_server=url, watch_seconds=WATCH_SECONDS)
            for spec in self.specs
        ]
        try:
            start_all(sources, BEGINS_WITHIN)
            yield f"{', '.join(kind.resource.kind for spec in self.specs for kind in spec.kinds)} of {url}"
        finally:
            for source in sources:
                source.stop()


def _specs(path: Path) -> tuple[SourceSpec, ...]:
    """The sources that a kustomization or a file names."""
    with told_in_one_line():
        found = _kustomized(path) if path.is_dir() else yaml_documents(path, read_text(path))
    try:
        specs = tuple(map(SourceSpec.from_manifest, manifests.of_kind(found, "ApiServerSource")))
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from None
    if not specs:
        raise BadInput(f"{path}: has no ApiServerSource in it")
    for spec in specs:
        for kind in spec.kinds:
            if is_secret({"kind": kind.resource.kind, "apiVersion": kind.resource.api_version}):
                raise BadInput(f"{path}: ApiServerSource {spec.name}: Secrets are never recorded")
    return specs


def _kustomized(folder: Path) -> list[manifests.Manifest]:
    try:
        return manifests.load(folder)
    except (OSError, manifests.UnsupportedManifestError) as error:
        raise BadInput(f"{folder}: {error}") from None
