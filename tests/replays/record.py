"""Record the stories anew from Knative's real adapter on a real cluster; review the diff of their files.

python -m tests.replays.record [story ...]
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES
from muster.simulator.overlays import CLUSTER
from tests.cluster.cluster import ClusterOptions, RealCluster, running
from tests.e2e.support.muster import Muster
from tests.replays.recorded import FOLDER
from tests.replays.recording.adapters import listening
from tests.replays.recording.play import Play, add_node
from tests.replays.recording.scripts import SCRIPTS, Script
from tests.replays.recording.take import Object, Take

NODES = ("node-1", "node-2", "node-3")


def main(stories: list[str], folder: Path = FOLDER) -> int:
    """Record these stories, by default all; return the exit code."""
    if unknown := set(stories) - SCRIPTS.keys():
        sys.stderr.write(f"no story {', '.join(sorted(unknown))}; there are {', '.join(SCRIPTS)}\n")
        return 2
    with stage() as cluster:
        for story in stories or SCRIPTS:
            started = time.monotonic()
            sys.stderr.write(f"{story} ...\n")
            take = record(cluster, SCRIPTS[story])
            sys.stderr.write(f"{story}: {len(take.resource)} events in {time.monotonic() - started:.0f} s\n")
            take.write(folder, story)
    return 0


@contextlib.contextmanager
def stage() -> Iterator[RealCluster]:
    """Run a cluster with three nodes, Muster's roles and admission policies, but without its functions."""
    sys.stderr.write("The cluster starts ...\n")
    with running(ClusterOptions()) as cluster:
        for node in NODES:
            add_node(cluster, node)
        Muster(cluster, CLUSTER).install()
        yield cluster


def record(cluster: RealCluster, script: Script) -> Take:
    """Run one story with an adapter in each mode, and return what they sent."""
    runtime = _runtime(cluster, script) if script.shipped else {}
    if script.shipped and script.shipped == script.runtime:
        # An adapter sends nothing about objects that exist when it starts, so the story creates the runtime.
        cluster.api.must("DELETE", _path(script.shipped))
    with listening(cluster) as sink:
        play = Play(cluster, sink, script.namespace, script.runtime)
        try:
            script.play(play, runtime)
            return play.take()
        finally:
            play.end()


def _runtime(cluster: RealCluster, script: Script) -> Object:
    """Return a copy of a shipped runtime under the story's name, as a user would create it."""
    shipped = cluster.api.must("GET", _path(script.shipped))
    metadata = {"name": script.runtime, "labels": shipped["metadata"]["labels"]}
    return {**{name: shipped[name] for name in ("apiVersion", "kind", "spec")}, "metadata": metadata}


def _path(name: str) -> str:
    return CLUSTER_TRAINING_RUNTIMES.path(name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
