"""Golden files: what each example, and each runtime that the Trainer ships, is explained and compiled to.

python -m tests.examples.golden     writes them anew; review the diff
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from muster.cli.dry_run import DryRunCluster, assume_cluster
from muster.cli.explain import explain
from muster.data import EVENTING
from muster.objects.meta import KubernetesObject
from muster.policy.model import Plan
from muster.replay.plans import to_document
from muster.replay.snapshots import Objects, read_snapshots
from muster.runtime import steps
from muster.simulator.controllers import shipped_runtimes

EXAMPLES = sorted((EVENTING / "examples").glob("*.yaml"))
RUNTIMES = sorted(runtime["metadata"]["name"] for runtime in shipped_runtimes())
FOLDER = Path(__file__).parent / "golden"
NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)


def explained(objects: Objects) -> str:
    """The explanations of all owners in a file."""
    assumed = assume_cluster(objects)
    references = (KubernetesObject.read(owner).ref for owner in assumed.owners)
    return "\n".join(explain(DryRunCluster(assumed.objects), owner, NOW)[0] for owner in references)


def made(objects: Objects) -> list[dict[str, Any]]:
    """The Workload and the groups that come of a file, as their bodies are sent."""
    assumed = assume_cluster(objects)
    bodies: list[dict[str, Any]] = []
    for owner in assumed.owners:
        cluster = DryRunCluster(assumed.objects)
        for name in ("create_workload", "create_pod_groups"):
            step = steps.step_named(name)
            plan = step.plan(step.observe(cluster, KubernetesObject.read(owner).ref), NOW)
            if isinstance(plan, Plan):
                bodies += [action["body"] for action in to_document(step, plan)["actions"]]
                cluster = cluster.after(plan)
    return bodies


NAMES = [*(example.stem for example in EXAMPLES), *(f"runtime-{name}" for name in RUNTIMES)]
GOLDENS = [FOLDER / f"{name}.{kind}" for name in NAMES for kind in ("txt", "yaml")]


def named(name: str) -> Objects:
    """What the golden files of a name are about: an example, or a TrainJob of four nodes on a runtime."""
    runtime = name.removeprefix("runtime-")
    if runtime == name:
        return read_snapshots([EVENTING / "examples" / f"{name}.yaml"])[0].objects
    trainjob: dict[str, Any] = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", "namespace": "team-a"},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": {"numNodes": 4}},
    }
    return [trainjob]


def content(path: Path) -> str:
    """What belongs in a golden file today."""
    objects = named(path.stem)
    if path.suffix == ".txt":
        return explained(objects)
    text: str = yaml.safe_dump_all(made(objects), sort_keys=False, width=110)
    return text


def main() -> None:
    """Write all of them, and remove those of examples that are gone."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.iterdir():
        path.unlink()
    for path in GOLDENS:
        path.write_text(content(path))


if __name__ == "__main__":
    main()
