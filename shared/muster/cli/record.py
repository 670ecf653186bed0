"""`muster record`: record the events of a cluster into a file."""

from __future__ import annotations

import gzip
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic

import click

from muster.cli.cluster import KubeconfigOptions, cluster_options, connected, namespace_option
from muster.cli.common import BadInput, CommandError
from muster.cli.explain import named
from muster.cluster.errors import ClusterError
from muster.cluster.http.client import Client
from muster.objects.text import counted
from muster.policy.owners.kind import OwnerKind
from muster.replay.files import format_suffix
from muster.replay.recording import EventRecorder, MomentWriter, OutputFile
from muster.simulator.overlays import load
from muster.simulator.source import Source, start_all

MOMENT_SECONDS = 5.0
"""Time between two moments; none is written without a new event."""

_TICK_SECONDS = 1.0
"""Time between two looks at the job of --until."""


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
    "--until",
    "until",
    metavar="KIND/NAME",
    default="",
    help="Stop when this trainjob, jobset or job is complete or has failed.",
)
@namespace_option("Namespace of that job; default: the context's.")
@click.option(
    "--for",
    "seconds",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Stop after this time.",
)
def command(
    file: Path,
    options: KubeconfigOptions,
    objects_file: Path | None,
    until: str,
    namespace: str,
    seconds: float | None,
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
    job = _job_named(until) if until else None
    with connected(options, "record") as cluster, ExitStack() as exits:
        client = cluster.client
        place = namespace or cluster.namespace
        ended = partial(_has_ended, client, *job, place) if job else lambda: False
        recorder = EventRecorder(_open(exits, file))
        sources = Source.all_of(load(), client, recorder.receive, api_server=client.url)
        specs = [source.spec for source in sources]
        moments = None
        if objects_file is not None:
            moments = MomentWriter(_open(exits, objects_file), client, specs)
            moments.write("start")
        began = monotonic()
        with _stopped_by_signals(recorder):
            start_all(sources)
            kinds = dict.fromkeys(kind.resource.kind for spec in specs for kind in spec.kinds)
            click.echo(f"recording {', '.join(kinds)} of {client.url}; Ctrl-C stops it", err=True)
            _wait(inf if seconds is None else seconds, recorder, moments, ended)
        for source in sources:
            source.stop()
        if moments is not None:
            moments.write("end")
    _report(file, recorder, monotonic() - began)
    for plural, number in sorted(sum((source.interrupted for source in sources), Counter()).items()):
        click.echo(f"  interrupted: watches of {plural} ({number}); changes may be missing")
    if moments is not None:
        click.echo(f"{objects_file}: moments {', '.join(moments.names)}")
    if recorder.error is not None:
        raise CommandError(f"{file}: {recorder.error.strerror}")


def _open(exits: ExitStack, path: Path) -> OutputFile:
    """Return a new file that only its owner may read; compressed if its name ends in `.gz`."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    file = exits.enter_context(os.fdopen(descriptor, "wb"))
    if path.suffix != ".gz":
        return file
    return exits.enter_context(gzip.GzipFile(fileobj=file, mode="wb"))


@contextmanager
def _stopped_by_signals(recorder: EventRecorder) -> Iterator[None]:
    """Have Ctrl-C and SIGTERM end the recording, also one that a shell started in the background."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: recorder.ended.set()) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def _wait(
    seconds: float, recorder: EventRecorder, moments: MomentWriter | None, job_ended: Callable[[], bool]
) -> None:
    """Write moments until a signal or an error, the time is over, or a second after the job has ended."""
    now = monotonic()
    end, next_moment, known = now + seconds, now + MOMENT_SECONDS, 0
    while not recorder.ended.wait(max(0.0, min(_TICK_SECONDS, end - monotonic()))) and monotonic() < end:
        if monotonic() >= next_moment:
            next_moment += MOMENT_SECONDS
            if moments is not None and recorder.recorded.total() != known:
                known = recorder.recorded.total()
                moments.write()
        if job_ended():
            end = min(end, monotonic() + _TICK_SECONDS)
    recorder.ended.set()


def _job_named(text: str) -> tuple[OwnerKind, str]:
    kind, name = named([text])
    if isinstance(kind, str):
        raise BadInput(f"--until {text}: is no trainjob, jobset or job")
    return kind, name


def _has_ended(client: Client, kind: OwnerKind, name: str, namespace: str) -> bool:
    """Whether a job is complete or has failed; not while the API server does not answer."""
    with suppress(ClusterError):
        body = client.get(kind.resource, name, namespace)
        return body is not None and kind.view.read(body).finished
    return False


def _report(file: Path, recorder: EventRecorder, seconds: float) -> None:
    """Print the number of recorded events by kind and verb."""
    click.echo(f"{file}: {counted(recorder.recorded.total(), 'event')} in {seconds:.1f} s")
    for (kind, verb), count in sorted(recorder.recorded.items()):
        click.echo(f"  {count} {kind} {verb}")
