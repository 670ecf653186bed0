"""`muster record`: record the events of a cluster into a file."""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from contextlib import ExitStack
from math import inf
from pathlib import Path
from time import monotonic
from typing import Any

import click

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected
from muster.cli.common import BadInput, CommandError, interrupt_by_signals
from muster.replay.files import format_suffix
from muster.replay.recording import CheckpointWriter, EventRecorder, OutputFile
from muster.simulator.overlays import load
from muster.simulator.source import Source, start_all

TICK_SECONDS = 0.5
"""How often the time is checked."""

WATCH_TIMEOUT_SECONDS = 10.0
"""How long to wait for the watches at the start; an API may not be served yet."""

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class _Duration(click.ParamType[float]):
    """A time in seconds, written as `90`, `2.5s`, `2m` or `1h`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds of a text."""
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", str(value))
        if match is None:
            self.fail(f"{value!r} is not a time such as 30s, 2m or 1h", param, ctx)
        return float(match[1]) * _UNITS[match[2]]


@click.command("record")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@cluster_options
@click.option(
    "--objects",
    "objects_file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the cluster's objects at several moments to this file, for `muster replay --objects`.",
)
@click.option(
    "--every",
    type=_Duration(),
    default="5s",
    show_default=True,
    metavar="TIME",
    help="Time between two moments; none is written without a new event.",
)
@click.option(
    "--for",
    "seconds",
    type=_Duration(),
    default=None,
    metavar="TIME",
    help="Stop after this time, such as 90s or 2m.",
)
def command(
    file: Path, options: KubeconfigOptions, objects_file: Path | None, every: float, seconds: float | None
) -> None:
    """Record events into FILE (.jsonl or .jsonl.gz), one CloudEvent per line, until Ctrl-C.

    The cluster's API server is watched as the sources of eventing/overlays/cluster do, and FILE gets what
    Knative's ApiServerSource would send.

    Secrets are never recorded, nor values of environment variables, words of commands, managedFields and
    annotations that hold the object as it was applied.
    """
    if format_suffix(file) not in {".jsonl", ".ndjson"}:
        raise BadInput(f"{file}: file name must end in .jsonl or .jsonl.gz")
    for path in (file, objects_file):
        if path is not None and path.exists():
            raise BadInput(f"{path}: already exists")
    interrupt_by_signals()
    with connected(options, "record") as cluster, ExitStack() as exits:
        client = cluster.client
        recorder = EventRecorder(_open(exits, file))
        sources = Source.all_of(load(), client, recorder.receive, api_server=client.url)
        specs = [source.spec for source in sources]
        checkpoints = None
        if objects_file is not None:
            checkpoints = CheckpointWriter(_open(exits, objects_file), client, specs, every)
            checkpoints.write("start")
        start_all(sources, WATCH_TIMEOUT_SECONDS)
        kinds = dict.fromkeys(kind.resource.kind for spec in specs for kind in spec.kinds)
        click.echo(f"recording {', '.join(kinds)} of {client.url}; Ctrl-C stops it", err=True)
        duration = _wait(inf if seconds is None else seconds, recorder, checkpoints)
        recorder.ended.set()
        for source in sources:
            source.stop()
        if checkpoints is not None:
            checkpoints.try_write("end")
    interrupted: Counter[str] = sum((source.interrupted for source in sources), Counter())
    _report(file, recorder, duration, interrupted)
    if checkpoints is not None:
        click.echo(f"{objects_file}: moments {', '.join(checkpoints.names)}")
    if recorder.error is not None:
        raise CommandError(f"{file}: {recorder.error.strerror}")


def _open(exits: ExitStack, path: Path) -> OutputFile:
    """Return a new file that only its owner may read; compressed if its name ends in `.gz`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    file = exits.enter_context(os.fdopen(descriptor, "wb"))
    if path.suffix != ".gz":
        return file
    return exits.enter_context(gzip.GzipFile(fileobj=file, mode="wb"))


def _wait(seconds: float, recorder: EventRecorder, checkpoints: CheckpointWriter | None) -> float:
    """Write checkpoints until Ctrl-C, an error or the time is over; return how many seconds it took."""
    began = monotonic()
    try:
        while (left := began + seconds - monotonic()) > 0 and not recorder.ended.wait(
            min(TICK_SECONDS, left)
        ):
            if checkpoints is not None:
                checkpoints.write_if_due(recorder.recorded.total())
    except KeyboardInterrupt:
        pass
    return monotonic() - began


def _report(file: Path, recorder: EventRecorder, seconds: float, interrupted: Counter[str]) -> None:
    """Print the number of recorded events by kind and verb, and of those left out by reason."""
    click.echo(f"{file}: {recorder.recorded.total()} events in {seconds:.1f} s")
    counted = sorted(recorder.recorded.items())
    for kind in dict.fromkeys(kind for (kind, _), _ in counted):
        counts = [f"{count} {verb}" for (other, verb), count in counted if other == kind]
        click.echo(f"  {kind}: {', '.join(counts)}")
    for reason, count in sorted(recorder.left_out.items()):
        click.echo(f"  left out: {count} {reason}")
    for plural, number in sorted(interrupted.items()):
        click.echo(f"  interrupted: {number} watches of {plural}; changes may be missing")
