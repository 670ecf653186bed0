"""`muster view`: a page that shows the gangs of a cluster or recording, and why they are as they are."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path

import click
from flask import Flask, Response, request

from muster.cli.cluster import (
    KubeconfigOptions,
    cluster_errors,
    cluster_options,
    connected,
    namespace_option,
)
from muster.cli.common import BadInput, errors_as_bad_input, interrupt_by_signals
from muster.cli.gang_reader import GangReader
from muster.cli.page import live_page, recorded_page
from muster.cluster.http.client import Client
from muster.local.stack import Stack, WsgiServer
from muster.local.stories.story import STORIES, StoryRun
from muster.local.stories.watching import Entry, TimelineRecorder
from muster.objects.resources import NODES
from muster.replay.activity import Activity
from muster.replay.files import read_events
from muster.replay.snapshots import read_snapshots
from muster.replay.timeline import BEFORE_SEEN, Timeline, recorded

_TICK_SECONDS = 0.2
_PING_SECONDS = 15
"""So often a page that hears nothing else is written to, so that one that was closed is noticed."""

_THREADS = 32
"""Each open page keeps one."""

EXAMPLES = """\b
Examples:
  muster view                              the cluster of your kubeconfig
  muster view --story does-not-fit         a cluster in this process, and one story on it
  muster view incident.jsonl --objects incident.yaml
"""


@click.command("view", epilog=EXAMPLES)
@click.argument("event_files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--objects",
    "object_files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Objects of a recording.",
)
@click.option(
    "--story",
    "stories",
    multiple=True,
    type=click.Choice(list(STORIES)),
    metavar="NAME",
    help="Run this story on an embedded cluster; repeatable.",
)
@namespace_option("Only this namespace; default: all.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port; default: any that is free.")
@cluster_options
def command(
    event_files: tuple[Path, ...],
    object_files: tuple[Path, ...],
    stories: tuple[str, ...],
    namespace: str,
    port: int,
    options: KubeconfigOptions,
) -> None:
    """Serve a page with the gangs of a cluster, on this machine alone, until Ctrl-C.

    It shows nodes and gangs, the groups and pods of each owner, why a gang waits, and a timeline: which event
    led to which function, what that wrote, and what came of it. The page is live, only reads, and loads
    nothing from the network. FILE... are events that `muster record` wrote.
    """
    if event_files and stories:
        raise BadInput("--story: cannot be used with FILE")
    interrupt_by_signals()
    if event_files:
        with errors_as_bad_input():
            requests = [request for path in event_files for request in read_events(path)]
            page = recorded_page(recorded(requests, read_snapshots(object_files)), event_files[0].name)
        with _served(app_of(page), port), suppress(KeyboardInterrupt):
            threading.Event().wait()
    elif stories:
        activities: queue.SimpleQueue[Activity] = queue.SimpleQueue()
        with cluster_errors("the local stack"), Stack(listener=activities.put) as stack:
            tell = threading.Thread(target=_tell, args=(stack.client, stories), daemon=True)
            _follow(stack.client, namespace, f"stories {', '.join(stories)}", port, activities, tell.start)
    else:
        with connected(options, "view") as cluster:
            if namespace:
                cluster.require_namespace(namespace)
            _follow(cluster.client, namespace, cluster.client.url, port)


def app_of(page: str, timeline: Timeline | None = None) -> Flask:
    """Return the app that serves a page, and what is new in a timeline to the pages that are open."""
    app = Flask("muster", static_folder=None)
    # A name that a foreign page lets lead to this machine is refused.
    app.config["TRUSTED_HOSTS"] = ["127.0.0.1", "localhost"]

    @app.get("/")
    def show() -> Response:
        return Response(page, headers={"X-Frame-Options": "DENY", "Cache-Control": "no-store"})

    @app.get("/events")
    def events() -> Response:
        seen = request.headers.get("Last-Event-ID", "")
        known = int(seen) if seen.isdecimal() else 0
        return Response(_news(timeline, known) if timeline else (), content_type="text/event-stream")

    return app


def _news(timeline: Timeline, seen: int) -> Iterator[str]:
    """Yield server-sent events: first all that a page lacks, then what comes."""
    while True:
        data = timeline.since(seen)
        seen = data["from"] + len(data["entries"])
        yield f"id: {seen}\ndata: {json.dumps(data)}\n\n"
        while not timeline.wait(seen, _PING_SECONDS):
            yield ": still there\n\n"


@contextmanager
def _served(app: Flask, port: int) -> Iterator[None]:
    try:
        server = WsgiServer(app, "view", _THREADS, port)
    except OSError as error:
        raise BadInput(f"--port {port}: {error.strerror}") from None
    click.echo(f"open {server.url} in a browser; Ctrl-C stops it")
    try:
        yield
    finally:
        server.stop()


def _follow(
    client: Client,
    namespace: str,
    title: str,
    port: int,
    activities: queue.SimpleQueue[Activity] | None = None,
    begin: Callable[[], None] = lambda: None,
) -> None:
    """Serve the page of a cluster until Ctrl-C; `begin` is called once it is watched."""
    reader = GangReader(client, namespace)
    with reader.following([NODES]) as recorder:
        timeline = Timeline(recorder.objects())
        for kind, message in reader.not_read.items():
            click.echo(f"muster: {kind} could not be read: {message}", err=True)
        with _served(app_of(live_page(title), timeline), port), suppress(KeyboardInterrupt):
            begin()
            while True:
                news: list[Entry | Activity] = list(recorder.take())
                while activities and not activities.empty():
                    news.append(activities.get())
                for one in sorted(news, key=attrgetter("at")):
                    if isinstance(one, Entry):
                        timeline.add_change(one.at, one.change, one.object)
                    elif one.acted:
                        timeline.add_run(one)
                # The log line of a function comes after its writes, and is shown before them.
                timeline.publish(time.time() - BEFORE_SEEN)
                time.sleep(_TICK_SECONDS)


def _tell(client: Client, names: Sequence[str]) -> None:
    """Run stories one after the other."""
    with TimelineRecorder(client) as recorder:
        for name in names:
            StoryRun(STORIES[name], client, recorder).run()
