"""Record the stories anew from Knative's real adapter on the real cluster, and show what differs.

python -m tests.replays.record [story ...]

A recording in which the same happened as in the one that is there leaves its files as they are: UIDs, times
and the order of what happens at the same time are no news.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES
from tests.cluster.cluster import Cluster, Options, running
from tests.e2e.support.muster import Muster
from tests.replays.recorded import FOLDER
from tests.replays.recording.adapters import OVERLAY, listening
from tests.replays.recording.difference import difference
from tests.replays.recording.play import Play, add_node
from tests.replays.recording.scripts import SCRIPTS, Script
from tests.replays.recording.take import Object, Take

NODES = ("node-1", "node-2", "node-3")


def main(stories: list[str], folder: Path = FOLDER) -> int:
    """Records stories, all where none is named; returns the exit code."""
    if unknown := set(stories) - SCRIPTS.keys():
        sys.stderr.write(f"no story {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}\n")
        return 2
    with stage() as cluster:
        for story in stories or SCRIPTS:
            started = time.monotonic()
            sys.stderr.write(f"{story} ...\n")
            take = record(cluster, SCRIPTS[story])
            sys.stderr.write(f"{story}: {len(take.resource)} events in {time.monotonic() - started:.0f} s\n")
            keep(story, take, folder)
    return 0


@contextlib.contextmanager
def stage() -> Iterator[Cluster]:
    """The cluster with three nodes and Muster's roles and admission policies, but nothing that reacts."""
    sys.stderr.write("The cluster starts ...\n")
    with running(Options()) as cluster:
        for node in NODES:
            add_node(cluster, node)
        Muster(cluster, OVERLAY).install()
        yield cluster


def record(cluster: Cluster, script: Script) -> Take:
    """Plays one story in front of both adapters."""
    runtime = _runtime(cluster, script) if script.shipped else {}
    if script.shipped and script.shipped == script.runtime:
        # What exists when an adapter starts is never sent: the story is to create it.
        cluster.api.must("DELETE", _path(script.shipped))
    with listening(cluster) as sink:
        play = Play(cluster, sink, script.namespace, script.runtime)
        try:
            script.play(play, runtime)
            return play.take()
        finally:
            play.end()


def keep(story: str, take: Take, folder: Path) -> None:
    """Writes a recording where it is other than the one that is there, and says in what."""
    there = folder / f"{story}.reference.jsonl"
    changed = difference(story, Take.read(folder, story), take) if there.exists() else f"{story} is new"
    if changed:
        take.write(folder, story)
        sys.stdout.write(f"{changed}\n")
    else:
        sys.stdout.write(f"{story}: the same as before; its files are left as they are\n")
    sys.stdout.flush()


def _runtime(cluster: Cluster, script: Script) -> Object:
    """The runtime of a story as somebody would create it."""
    found = cluster.api.must("GET", _path(script.shipped))
    metadata = {"name": script.runtime, "labels": found["metadata"]["labels"]}
    return {**{name: found[name] for name in ("apiVersion", "kind", "spec")}, "metadata": metadata}


def _path(name: str) -> str:
    return CLUSTER_TRAINING_RUNTIMES.path(name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
