"""`muster record`: events into a file, from a cluster or from whoever sends them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic

import click

from muster import manifests
from muster.cli.bad_input import BadInput
from muster.cli.cluster_option import connected, kubeconfig_option
from muster.cli.loopback import beyond_option
from muster.cli.record_from import Door, Origin, Watched
from muster.cli.stopping import told_to_stop
from muster.replay.appending import Pieces
from muster.replay.checkpoints import Moments
from muster.replay.files import kind_of
from muster.replay.recording import Recording

TICK_SECONDS = 0.5
"""Between two looks at the time, and at what is told on a terminal."""


@click.command("record")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Take what is sent there, instead of watching a cluster; port 0 takes a free one.",
)
@kubeconfig_option
@click.option(
    "--sources",
    type=click.Path(path_type=Path, exists=True),
    default=manifests.CLUSTER,
    help="Kustomization or file whose ApiServerSources say what is watched; else eventing/overlays/cluster.",
)
@click.option(
    "--objects",
    "objects_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the objects of the cluster there, at several moments, for `muster replay --objects`.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two of those moments, where an event came since.",
)
@click.option(
    "--for", "seconds", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Stop after so long."
)
@click.option(
    "--count", type=click.IntRange(min=0), default=0, metavar="N", help="Stop after so many events."
)
@click.option("--overwrite", is_flag=True, help="Files of these names may go.")
@beyond_option("Listen where other machines can send to.")
def command(  # noqa: PLR0913 - one argument for each option
    file: Path,
    listen: str | None,
    kubeconfig: Path | None,
    sources: Path,
    objects_file: Path | None,
    every: float,
    seconds: float | None,
    count: int,
    *,
    overwrite: bool,
    beyond: bool,
) -> None:
    """Record events into FILE (.jsonl or .jsonl.gz), one CloudEvent a line, until Ctrl-C.

    Without --listen the cluster's API server is watched, and FILE gets what Knative's ApiServerSource would
    send. With it, FILE gets what is sent there: by a broker's trigger whose subscriber it is, or by an
    ApiServerSource whose sink it is. Every event is answered by 202.

    Secrets are never recorded, nor values of environment variables, words of commands, managedFields and
    annotations that hold the object as it was applied.

    Exits with 1 when less than --count events came, or the file could not be written any more.
    """
    if kind_of(file) not in {".jsonl", ".ndjson"}:
        raise BadInput(f"{file}: one event a line is called .jsonl or .jsonl.gz")
    with told_to_stop() as stop, _on_a_full_disk(), ExitStack() as parts:
        connect = partial(_connected, parts, kubeconfig, sources)
        origin: Origin = connect() if listen is None else Door.at(listen, beyond=beyond)
        shown = None if objects_file is None else connect()
        recording = Recording(_pieces(parts, file, overwrite=overwrite), limit=count, full=stop.set)
        parts.callback(recording.end)
        moments = None
        if shown is not None and objects_file is not None:
            pieces = _pieces(parts, objects_file, overwrite=overwrite)
            moments = Moments(pieces, shown.client, shown.specs, every)
            moments.take("start")
        with origin.into(recording) as what:
            click.echo(f"recording {what}; Ctrl-C stops it", err=True)
            took = _wait(stop, seconds, recording, moments)
        if moments is not None:
            moments.try_take("end")
    _tell(file, recording, took)
    if moments is not None:
        click.echo(f"{objects_file}: moments {', '.join(moments.names)}")
    if recording.error is not None:
        raise click.ClickException(f"{file}: {recording.error.strerror}")
    if recording.kept.total() < count:
        raise click.ClickException(f"{recording.kept.total()} of {count} events came")


def _connected(parts: ExitStack, kubeconfig: Path | None, sources: Path) -> Watched:
    return Watched.by(parts.enter_context(connected(kubeconfig, "record")), sources)


def _pieces(parts: ExitStack, path: Path, *, overwrite: bool) -> Pieces:
    try:
        pieces = Pieces(path, overwrite=overwrite)
    except FileExistsError:
        raise BadInput(f"{path}: is there already; --overwrite lets it go") from None
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}") from None
    parts.callback(pieces.close)
    parts.push(partial(_discard_empty, path))
    return pieces


def _discard_empty(path: Path, _kind: object, error: BaseException | None, _trace: object) -> None:
    """Where the recording never began, the same command works again."""
    if error is not None and path.stat().st_size == 0:
        path.unlink()


def _wait(
    stop: threading.Event, seconds: float | None, recording: Recording, moments: Moments | None
) -> float:
    """Until it is told to stop or the time is over; the seconds that took."""
    began = monotonic()
    end = began + (inf if seconds is None else seconds)
    while not stop.wait(min(TICK_SECONDS, max(0.0, end - monotonic()))) and monotonic() < end:
        if moments is not None:
            moments.take_if_due(recording.kept.total())
        _show(recording)
    return monotonic() - began


def _show(recording: Recording) -> None:
    """Count on a terminal, on one line."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K{recording.kept.total()} events, the last {recording.last}", nl=False, err=True)


def _tell(file: Path, recording: Recording, seconds: float) -> None:
    """What was recorded, by kind and verb, and what was not."""
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)
    click.echo(f"{file}: {recording.kept.total()} events in {seconds:.1f} s")
    for kind in dict.fromkeys(kind for kind, _ in sorted(recording.kept)):
        counts = [
            f"{count} {verb}".rstrip() for (of, verb), count in sorted(recording.kept.items()) if of == kind
        ]
        click.echo(f"  {kind}: {', '.join(counts)}")
    for why, count in sorted(recording.left_out.items()):
        click.echo(f"  left out: {count} {why}")


@contextmanager
def _on_a_full_disk() -> Iterator[None]:
    """What could not be written at the very end is told in one line."""
    try:
        yield
    except OSError as error:
        raise click.ClickException(error.strerror or str(error)) from None
