"""`muster record`: record events into a file, from a cluster or from the senders to an address."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from math import inf
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import click

from muster.cli.arguments import BadInput, Duration, interrupt_by_signals
from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.output import CommandError
from muster.cluster.http.client import Client
from muster.local.serving import WsgiServer
from muster.replay.files import AppendedFile, format_suffix
from muster.replay.recording.checkpoints import CheckpointWriter
from muster.replay.recording.events import EventRecorder, sink_app
from muster.simulator.overlays import CLUSTER, UnsupportedManifestError, load, of_kind
from muster.simulator.source import Source, SourceSpec, start_all

TICK_SECONDS = 0.5
"""How often the time is checked."""

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
    help="Kustomization or file with ApiServerSources to watch; default: eventing/overlays/cluster.",
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
    default=None,
    metavar="TIME",
    help="Stop after this time, such as 90s or 2m.",
)
@click.option("--count", type=click.IntRange(min=0), default=0, metavar="N", help="Stop after N events.")
@click.option("--overwrite", is_flag=True, help="Overwrite existing files.")
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
) -> None:
    """Record events into FILE (.jsonl or .jsonl.gz), one CloudEvent per line, until Ctrl-C.

    Without --listen the cluster's API server is watched, and FILE gets what Knative's ApiServerSource would
    send. With it, FILE gets what is sent there: by a broker's trigger whose subscriber it is, or by an
    ApiServerSource whose sink it is. Every event is answered by 202.

    Secrets are never recorded, nor values of environment variables, words of commands, managedFields and
    annotations that hold the object as it was applied.

    Exits with 1 if fewer than --count events were received, or the file could not be written.
    """
    if format_suffix(file) not in {".jsonl", ".ndjson"}:
        raise BadInput(f"{file}: file name must end in .jsonl or .jsonl.gz")
    interrupt_by_signals()
    with ExitStack() as exits:
        client: Client | None = None
        specs: tuple[SourceSpec, ...] = ()
        if listen is None or objects_file is not None:
            specs = _source_specs(sources)
            client = exits.enter_context(connected(options, "record")).client
        ended, interrupted = threading.Event(), Counter[str]()
        recorder = EventRecorder(_open(exits, file, overwrite=overwrite), limit=count, full=ended.set)
        exits.callback(recorder.stop)
        checkpoints = None
        if client is not None and objects_file is not None:
            output = _open(exits, objects_file, overwrite=overwrite)
            checkpoints = CheckpointWriter(output, client, specs, every)
            checkpoints.write("start")
        if listen is None and client is not None:
            exits.enter_context(_watching(client, specs, recorder, interrupted))
        else:
            exits.enter_context(_listening(listen or "", recorder))
        duration = _wait(ended, inf if seconds is None else seconds, recorder, checkpoints)
        recorder.stop()
        if checkpoints is not None:
            checkpoints.try_write("end")
    _report(file, recorder, duration)
    for plural, number in sorted(interrupted.items()):
        click.echo(f"  interrupted: {number} watches of {plural}; changes may be missing")
    if checkpoints is not None:
        click.echo(f"{objects_file}: moments {', '.join(checkpoints.names) or 'none'}")
    if recorder.error is not None:
        raise CommandError(f"{file}: {recorder.error.strerror}")
    if recorder.recorded.total() < count:
        raise CommandError(f"{recorder.recorded.total()} of {count} events received")


@contextmanager
def _listening(address: str, recorder: EventRecorder) -> Iterator[None]:
    """Record the events that are sent to `HOST:PORT`, `:PORT` (127.0.0.1) or `[::1]:PORT` within the block.

    Raises:
        BadInput: the text is no such address, or not one of this machine.
    """
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname or "127.0.0.1", parts.port
    except ValueError:
        host, port = "", None
    if port is None or parts.path:
        raise BadInput(f"--listen: {address!r} is not HOST:PORT")
    try:
        server = WsgiServer(sink_app(recorder.receive), "sink", host, port)
    except OSError as error:
        raise BadInput(f"--listen {address}: {os.strerror(error.errno or 0)}") from None
    try:
        shown = f"[{host}]" if ":" in host else host
        click.echo(f"recording events sent to http://{shown}:{server.port}; Ctrl-C stops it", err=True)
        yield
    finally:
        server.stop()


@contextmanager
def _watching(
    client: Client, specs: Sequence[SourceSpec], recorder: EventRecorder, interrupted: Counter[str]
) -> Iterator[None]:
    """Record the events that Knative's ApiServerSource would send within the block.

    Args:
        client: of the cluster.
        specs: the sources whose kinds are watched.
        recorder: of the events.
        interrupted: gets the number of watches that failed or fell behind, by the plural of their kind.
    """

    def take(headers: Mapping[str, str], body: bytes) -> int:
        recorder.receive(headers, body)
        return HTTPStatus.ACCEPTED

    sources = [
        Source(spec, client, take, api_server=client.url, watch_seconds=WATCH_SECONDS) for spec in specs
    ]
    try:
        start_all(sources, WATCH_TIMEOUT_SECONDS)
        kinds = dict.fromkeys(kind.resource.kind for spec in specs for kind in spec.kinds)
        click.echo(f"recording {', '.join(kinds)} of {client.url}; Ctrl-C stops it", err=True)
        yield
    finally:
        for source in sources:
            source.stop()
            interrupted.update(source.interrupted)


def _source_specs(path: Path) -> tuple[SourceSpec, ...]:
    """Return the ApiServerSources of a kustomization folder or a file.

    Raises:
        BadInput: they are missing or invalid, or one of them watches Secrets.
    """
    try:
        specs = tuple(map(SourceSpec.from_manifest, of_kind(load(path), "ApiServerSource")))
    except UnsupportedManifestError as error:
        raise BadInput(f"{path}: {error}") from None
    if not specs:
        raise BadInput(f"{path}: has no ApiServerSource")
    for spec in specs:
        if any(kind.is_of("", "secrets") for kind in spec.kinds):
            raise BadInput(f"{path}: ApiServerSource {spec.name}: Secrets are never recorded")
    return specs


def _open(exits: ExitStack, path: Path, *, overwrite: bool) -> AppendedFile:
    """Return a new file; one that is still empty after an error is deleted."""
    try:
        output = AppendedFile(path, overwrite=overwrite)
    except FileExistsError:
        raise BadInput(f"{path}: already exists; --overwrite replaces it") from None

    def delete_if_empty(_kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and path.stat().st_size == 0:
            path.unlink()

    exits.push(delete_if_empty)
    exits.callback(output.close)
    return output


def _wait(
    ended: threading.Event, seconds: float, recorder: EventRecorder, checkpoints: CheckpointWriter | None
) -> float:
    """Write checkpoints until ended, Ctrl-C or the time is over; return how many seconds it took."""
    began = monotonic()
    try:
        while (left := began + seconds - monotonic()) > 0 and not ended.wait(min(TICK_SECONDS, left)):
            if checkpoints is not None:
                checkpoints.write_if_due(recorder.recorded.total())
    except KeyboardInterrupt:
        pass
    return monotonic() - began


def _report(file: Path, recorder: EventRecorder, seconds: float) -> None:
    """Print the number of recorded events by kind and verb, and of those left out by reason."""
    click.echo(f"{file}: {recorder.recorded.total()} events in {seconds:.1f} s")
    counted = sorted(recorder.recorded.items())
    for kind in dict.fromkeys(kind for (kind, _), _ in counted):
        counts = [f"{count} {verb}".rstrip() for (other, verb), count in counted if other == kind]
        click.echo(f"  {kind}: {', '.join(counts)}")
    for reason, count in sorted(recorder.left_out.items()):
        click.echo(f"  left out: {count} {reason}")
