"""`muster record`: record events into a file, from a cluster or from the senders to an address."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from math import inf
from pathlib import Path
from time import monotonic
from typing import Protocol

import click

from muster.cli.arguments import (
    BadInput,
    Duration,
    beyond_option,
    keep_to_this_machine,
    load_overlay,
    parse_endpoint,
    stop_signals,
)
from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.output import CommandError, clear_line, echo, echo_line, reading_shown, step_shown
from muster.cluster.http.client import Client
from muster.local.serving import WsgiServer
from muster.objects.text import printable
from muster.replay.files import AppendedFile, format_suffix
from muster.replay.recording.checkpoints import CheckpointWriter
from muster.replay.recording.events import EventRecorder, sink_app
from muster.simulator.overlays import CLUSTER, UnsupportedManifestError, of_kind
from muster.simulator.source import Source, SourceSpec, start_all

TICK_SECONDS = 0.5
"""How often the time is checked and the count on a terminal is updated."""

WATCH_TIMEOUT_SECONDS = 10.0
"""How long to wait for the watches at the start; an API may not be served yet."""

WATCH_SECONDS = 5
"""How long a watch request lasts."""


@click.command("record")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Record events sent to this address instead of watching a cluster; port 0: any free port.",
)
@cluster_options
@click.option(
    "--sources",
    type=click.Path(path_type=Path, exists=True),
    default=CLUSTER,
    help="Kustomization or file with ApiServerSources to watch; default: Muster's own overlay.",
)
@click.option(
    "--objects",
    "objects_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the cluster's objects at several moments to this file, for `muster replay --objects`.",
)
@click.option(
    "--every",
    type=Duration(),
    default="5s",
    show_default=True,
    metavar="TIME",
    help="Time between two moments; none is written without a new event.",
)
@click.option(
    "--for",
    "seconds",
    type=Duration(),
    metavar="TIME",
    help="Stop after this time, such as 90s or 2m.",
)
@click.option("--count", type=click.IntRange(min=0), default=0, metavar="N", help="Stop after N events.")
@click.option("--overwrite", is_flag=True, help="Overwrite existing files.")
@beyond_option("Listen on an address that other machines can reach.")
def command(  # noqa: PLR0913 - one argument for each option
    file: Path,
    listen: str | None,
    options: KubeconfigOptions,
    sources: Path,
    objects_file: Path | None,
    every: float,
    seconds: float | None,
    count: int,
    *,
    overwrite: bool,
    beyond: bool,
) -> None:
    """Record events into FILE (.jsonl or .jsonl.gz), one CloudEvent per line, until Ctrl-C.

    Without --listen the cluster's API server is watched, and FILE gets what Knative's ApiServerSource would
    send. With it, FILE gets what is sent there: by a broker's trigger whose subscriber it is, or by an
    ApiServerSource whose sink it is. Every event is answered by 202.

    Secrets are never recorded, nor values of environment variables, words of commands, managedFields and
    annotations that hold the object as it was applied.

    Exits with 1 if fewer than --count events were received, or the file could not be written.
    """
    _require_names(file, objects_file)
    ended = threading.Event()
    with ExitStack() as exits:
        connect = partial(_connect, exits, options, sources)
        origin: Origin = connect() if listen is None else HttpSink.at(listen, beyond=beyond)
        cluster = None if objects_file is None else connect()
        exits.enter_context(stop_signals(ended))  # until here Ctrl-C ends the command
        exits.enter_context(_write_errors())
        recorder = EventRecorder(_open(exits, file, overwrite=overwrite), limit=count, full=ended.set)
        exits.callback(recorder.stop)
        checkpoints = None
        if cluster is not None and objects_file is not None:
            output = _open(exits, objects_file, overwrite=overwrite)
            checkpoints = CheckpointWriter(output, cluster.client, cluster.specs, every)
            checkpoints.write("start")
        duration = 0.0
        if not ended.is_set():
            with origin.record(recorder) as description:
                echo_line(f"recording {description}; Ctrl-C stops it", err=True)
                duration = _wait(ended, seconds, recorder, checkpoints)
        if checkpoints is not None:
            checkpoints.try_write("end")
    _report(file, recorder, duration)
    for plural, number in sorted(origin.interrupted.items()):
        echo_line(f"  interrupted: {number} watches of {plural}; changes may be missing")
    if checkpoints is not None:
        echo_line(f"{objects_file}: moments {', '.join(checkpoints.names) or 'none'}")
    if recorder.error is not None:
        raise CommandError(f"{file}: {recorder.error.strerror}")
    if recorder.recorded.total() < count:
        raise CommandError(f"{recorder.recorded.total()} of {count} events received")


def _require_names(file: Path, objects_file: Path | None) -> None:
    if format_suffix(file) not in {".jsonl", ".ndjson"}:
        raise BadInput(f"{file}: file name must end in .jsonl or .jsonl.gz")
    if objects_file is not None and os.path.realpath(objects_file) == os.path.realpath(file):
        raise BadInput(f"--objects {objects_file}: is the file of the events")


class Origin(Protocol):
    """A source of events."""

    @property
    def interrupted(self) -> Counter[str]:
        """How many watches failed or fell behind, by the plural of their kind."""
        ...

    def record(self, recorder: EventRecorder) -> AbstractContextManager[str]:
        """Record its events within the block; yield a description of the source."""
        ...


@dataclass(frozen=True)
class HttpSink:
    """An address that receives events over HTTP."""

    host: str
    port: int
    interrupted: Counter[str] = field(default_factory=Counter)

    @classmethod
    def at(cls, text: str, *, beyond: bool) -> HttpSink:
        """Return the sink at `HOST:PORT`.

        Raises:
            BadInput: the text is no endpoint, or other machines could reach it and `beyond` is false.
        """
        host, port = parse_endpoint("--listen", text)
        keep_to_this_machine("--listen", host, "anyone could write into the file", beyond=beyond)
        return cls(host, port)

    @contextmanager
    def record(self, recorder: EventRecorder) -> Iterator[str]:
        """Record the events that are sent to the address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        try:
            socket.getaddrinfo(self.host, self.port)
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "is no name of a host"
            raise BadInput(f"--listen {host}:{self.port}: {reason}") from None
        try:
            server = WsgiServer(sink_app(recorder.receive), "sink", self.host, self.port)
        except OSError as error:
            raise BadInput(f"--listen {host}:{self.port}: {os.strerror(error.errno or 0)}") from None
        try:
            yield f"events sent to http://{host}:{server.port}"
        finally:
            server.stop()


@dataclass(frozen=True)
class ClusterWatch:
    """A cluster, and the sources whose kinds are watched in it."""

    client: Client
    specs: tuple[SourceSpec, ...]
    interrupted: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def record(self, recorder: EventRecorder) -> Iterator[str]:
        """Record the events that Knative's ApiServerSource would send."""

        def take(headers: Mapping[str, str], body: bytes) -> int:
            recorder.receive(headers, body)
            return HTTPStatus.ACCEPTED

        url = self.client.url
        sources = [
            Source(spec, self.client, take, api_server=url, watch_seconds=WATCH_SECONDS)
            for spec in self.specs
        ]
        try:
            with step_shown("starting") as show:
                show("namespaces")
                start_all(sources, WATCH_TIMEOUT_SECONDS)
            kinds = dict.fromkeys(kind.resource.kind for spec in self.specs for kind in spec.kinds)
            yield f"{', '.join(kinds)} of {url}"
        finally:
            for source in sources:
                source.stop()
                self.interrupted.update(source.interrupted)


def _source_specs(path: Path) -> tuple[SourceSpec, ...]:
    """Return the ApiServerSources of a kustomization folder or a file.

    Raises:
        BadInput: they are missing or invalid, or one of them watches Secrets.
    """
    sources = of_kind(load_overlay(path), "ApiServerSource")
    try:
        specs = tuple(_once(SourceSpec.from_manifest(one)) for one in sources)
    except UnsupportedManifestError as error:
        raise BadInput(f"{path}: {error}") from None
    if not specs:
        raise BadInput(f"{path}: has no ApiServerSource")
    for spec in specs:
        for kind in spec.kinds:
            if kind.is_of("", "secrets"):
                raise BadInput(f"{path}: ApiServerSource {spec.name}: Secrets are never recorded")
    return specs


def _once(spec: SourceSpec) -> SourceSpec:
    """Return a source that names each kind once for each selector; Knative would send each event again."""
    kinds = {(kind.resource.api_version, kind.resource.plural, kind.selector): kind for kind in spec.kinds}
    return replace(spec, kinds=tuple(kinds.values()))


def _connect(exits: ExitStack, options: KubeconfigOptions, sources: Path) -> ClusterWatch:
    with reading_shown(sources):
        specs = _source_specs(sources)
    return ClusterWatch(exits.enter_context(connected(options, "record")).client, specs)


def _open(exits: ExitStack, path: Path, *, overwrite: bool) -> AppendedFile:
    try:
        output = AppendedFile(path, overwrite=overwrite)
    except FileExistsError:
        raise BadInput(f"{path}: already exists; --overwrite replaces it") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    exits.callback(output.close)
    exits.push(partial(_delete_if_empty, path))
    return output


def _delete_if_empty(path: Path, _kind: object, error: BaseException | None, _trace: object) -> None:
    """Delete an empty file after an error, so that the command can be repeated; no device."""
    if error is not None and path.is_file() and path.stat().st_size == 0:
        path.unlink()


def _wait(
    ended: threading.Event,
    seconds: float | None,
    recorder: EventRecorder,
    checkpoints: CheckpointWriter | None,
) -> float:
    """Write checkpoints until ended or the time is over; return how many seconds it took."""
    began = monotonic()
    end = began + (inf if seconds is None else seconds)
    while not ended.wait(min(TICK_SECONDS, max(0.0, end - monotonic()))) and monotonic() < end:
        if checkpoints is not None:
            checkpoints.write_if_due(recorder.recorded.total())
        _show_count(recorder)
    return monotonic() - began


def _show_count(recorder: EventRecorder) -> None:
    """Update the line with the count, cut at the width of the terminal, if standard error is one."""
    if sys.stderr.isatty():
        clear_line()
        text = f"{recorder.recorded.total()} events, last: {recorder.last}"
        echo(printable(text, shutil.get_terminal_size().columns - 1), nl=False, err=True)


def _report(file: Path, recorder: EventRecorder, seconds: float) -> None:
    """Print the number of recorded events by kind and verb, and of those left out by reason."""
    if sys.stderr.isatty():
        clear_line()
    echo_line(f"{file}: {recorder.recorded.total()} events in {seconds:.1f} s")
    counted = sorted(recorder.recorded.items())
    for kind in dict.fromkeys(kind for (kind, _), _ in counted):
        counts = [f"{count} {verb}".rstrip() for (other, verb), count in counted if other == kind]
        echo_line(f"  {kind}: {', '.join(counts)}")
    for reason, count in sorted(recorder.left_out.items()):
        echo_line(f"  left out: {count} {reason}")


@contextmanager
def _write_errors() -> Iterator[None]:
    """Turn an OSError at the end of a recording, such as a full disk, into a one-line message."""
    try:
        yield
    except OSError as error:
        raise CommandError(error.strerror or str(error)) from None
