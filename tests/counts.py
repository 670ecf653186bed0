"""Exact counts that change on purpose only: modules imported at start, API calls and deliveries of stories.

`python -m tests.counts` writes them to tests/counts.yaml; `make golden-update` runs it.

A story is a recorded one up to its first deletion. Its objects appear on an embedded API server in the order
of the recorded events. After each of them the functions handle its event and those of their own writes, until
they write no more. There is one thread and no timer, so the counts are the same in every run.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import yaml

from muster.data import FUNCTIONS
from muster.objects import yaml_files
from muster.objects.resources import PODS, by_kind
from muster.policy.group_labels import GANG, GATE, GATED, GROUP, MIN_COUNT
from muster.replay.replay import ReplayStack, is_musters_group
from muster.replay.snapshots import Object
from muster.replay.summary import MUSTER_CONDITIONS, gates
from muster.runtime.steps import step_names
from muster.testing.cases import envelope
from tests.replays import recorded

COUNTS = Path(__file__).with_suffix(".yaml")
NOW = datetime(2026, 11, 21, 8, 30, tzinfo=UTC)
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "uid": "team-a"}}
SIZES = (8, 60)
START = """
import json, os, runpy, sys
before = set(sys.modules)
from muster.runtime.knative import serve_step
for path in sys.argv[1:]:
    if os.fork():
        os.wait()
        continue
    serve_step(runpy.run_path(path)["STEP"])
    new = set(sys.modules) - before
    print(json.dumps([name for name in new if getattr(sys.modules[name], "__file__", None)]), flush=True)
    os._exit(0)
"""
"""Starts each function as its image does, short of the server, and prints the modules that this imports."""

Counts = dict[str, Any]


def imported() -> dict[str, dict[str, int]]:
    """Return how many modules the start of each function imports: Muster's, and of other packages."""
    steps = sorted(step_names())
    code = [str(FUNCTIONS / step / "function" / "step.py") for step in steps]
    environment = {**os.environ, "MUSTER_API_SERVER": "http://127.0.0.1:9", "MUSTER_LOG_LEVEL": "CRITICAL"}
    command = [sys.executable, "-c", START, *code]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return dict(zip(steps, map(_counted, map(json.loads, output.splitlines())), strict=True))


def _counted(modules: list[str]) -> dict[str, int]:
    packages = Counter(module.partition(".")[0] for module in modules)
    others = {name for name in packages if name not in sys.stdlib_module_names and not name.startswith("_")}
    own = packages["muster"]
    return {"muster": own, "other packages": sum(packages[name] for name in others) - own}


def costs(story: str) -> dict[str, Any]:
    """Return the costs of a recorded story."""
    events = map(envelope, recorded.events(story))
    changes = takewhile(lambda event: not event["type"].endswith(".delete"), events)
    return costs_of(recorded.moments(story)[0].objects[0], (event["data"] for event in changes))


def pods_of_a_stateful_set(size: int) -> Iterator[Object]:
    """Yield the pods of a StatefulSet that is a gang, as the API server stores them, one after the other."""
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "web",
        "uid": "55555555",
        "controller": True,
    }
    labels = {MIN_COUNT: str(size), GANG: "web-main-55555555", GROUP: "main", GATED: "true"}
    for number in range(size):
        metadata: Object = {
            "name": f"web-{number}",
            "namespace": "team-a",
            "uid": f"pod-{number}",
            "labels": labels,
        }
        metadata |= {"ownerReferences": [owner], "resourceVersion": "1"}
        spec: Object = {
            "containers": [{"name": "main", "image": "example.com/web"}],
            "schedulingGates": [{"name": GATE}],
        }
        spec |= {"schedulingGroup": {"podGroupName": labels[GANG]}}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": {}}


def costs_of(namespace: Object, changes: Iterable[Object]) -> dict[str, Any]:
    """Return the deliveries by function, and the API calls by function, verb and resource."""
    with ReplayStack([namespace], NOW) as stack:
        before = stack.server.calls()
        for changed in changes:
            _happens(stack, changed)
        agents = {f"muster-{step.replace('_', '-')}": step for step in step_names()}
        calls: dict[str, dict[str, int]] = {}
        for (agent, verb, resource), count in sorted((stack.server.calls() - before).items()):
            if agent in agents:
                calls.setdefault(agents[agent], {})[f"{verb} {resource}"] = count
        assert not stack.dead_letters
        deliveries = Counter(activity.step for activity in stack.activities)
        return {"deliveries": dict(sorted(deliveries.items())), "calls": calls}


def _happens(stack: ReplayStack, obj: Object) -> None:
    """Store an object as it was recorded, and deliver its event, if a source sends one."""
    metadata = obj["metadata"]
    resource = by_kind(obj["apiVersion"], obj["kind"])
    live = stack._client.get(resource, metadata["name"], metadata.get("namespace", ""))
    if is_musters_group(obj) and live is None:
        return  # the functions create it
    stack.server.load([_with_writes(obj, live)])
    for change in stack._changes():
        stack.deliver(change)


def _with_writes(obj: Object, live: Object | None) -> Object:
    """Return a recorded object with what the functions have written on the live one."""
    new = copy.deepcopy(obj)
    del new["metadata"]["resourceVersion"]
    if live is None:
        return new
    if is_musters_group(obj):
        return {**live, "metadata": _unversioned(live), "status": new.get("status", {})}
    if obj["kind"] == PODS.kind and GATE not in gates(live):
        new["spec"]["schedulingGates"] = [
            gate for gate in new["spec"].get("schedulingGates", []) if gate["name"] != GATE
        ]
        new["metadata"].get("labels", {}).pop(GATED, None)
    conditions = [entry for entry in live.get("status", {}).get("conditions", []) if _is_musters(entry)]
    if conditions:
        status = new.setdefault("status", {})
        status["conditions"] = [*status.get("conditions", []), *conditions]
    return new


def _unversioned(obj: Object) -> Object:
    return {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}


def _is_musters(condition: Object) -> bool:
    return str(condition["type"]).endswith(MUSTER_CONDITIONS)


def all_counts() -> Counts:
    """Return everything that is pinned."""
    return {
        "modules": imported(),
        "stories": {story: costs(story) for story in recorded.STORIES},
        "stateful sets": {size: costs_of(NAMESPACE, pods_of_a_stateful_set(size)) for size in SIZES},
    }


def pinned() -> Counts:
    """Return the counts of tests/counts.yaml."""
    counts: Counts = yaml_files.load(COUNTS.read_text())
    return counts


def main() -> None:
    """Write tests/counts.yaml; review its diff."""
    text = yaml.safe_dump(all_counts(), default_flow_style=None, width=110)
    COUNTS.write_text(f"# Written by `make golden-update`; what they mean: tests/counts.py.\n{text}")


if __name__ == "__main__":
    main()
