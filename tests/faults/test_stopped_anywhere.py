"""resize_gang stopped after every one of its writes, then an event or a sweep: nothing lost, nothing half.

The simulated cluster runs by itself; the functions are called by hand, so that each can be stopped where the
test wants it. The laws of the stories hold over all that happened.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from muster.cluster.errors import Unavailable
from muster.cluster.versioned import Versioned
from muster.local.stories.laws import LAWS
from muster.local.stories.watching import KINDS, TimelineRecorder
from muster.objects.meta import ObjectRef
from muster.objects.resources import (
    COMPOSITE_POD_GROUPS,
    JOBS,
    JOBSETS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    WORKLOADS,
    Resource,
)
from muster.policy.group_labels import GROUP
from muster.policy.model import Action, PatchType
from muster.replay.summary import gates
from muster.runtime.handle import run_step
from muster.runtime.steps import step_named
from muster.simulator import overlays as manifests
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.controllers import Controllers, KubeletOptions, node
from muster.simulator.direct import Direct
from tests.e2e.support import owners
from tests.e2e.support.trees import chat
from tests.support.builders import NOW

Object = dict[str, Any]
STEPS = ("create_workload", "create_pod_groups", "patch_pods", "resize_gang")
PATIENCE = 10.0


class Stopped(Versioned):
    """A client that fails after a number of writes, without an answer to the last one."""

    def __init__(self, server: ApiServer, writes: int) -> None:
        super().__init__(Direct.to(server))
        self._left = writes
        self.stopped = False

    def write(self, action: Action, manager: str) -> Object:
        """Forward the write, and fail after the last allowed one."""
        if self._left == 0:
            self.stopped = True
            raise Unavailable("stopped by the test")
        self._left -= 1
        return super().write(action, manager)


class ManualPipeline:
    """One namespace of an embedded cluster, in which the test runs Muster's functions by hand."""

    def __init__(self, server: ApiServer, namespace: str, owner: Object) -> None:
        self.client, self.server, self.namespace = Direct.to(server), server, namespace
        self._connection = Versioned(self.client)
        labels = {"muster.dev/gang-jobs": "enabled"}
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
        self.client.create(NAMESPACES, home, manager="test")
        self._resource = JOBSETS if owner["kind"] == "JobSet" else JOBS
        body = {**owner, "metadata": {**owner["metadata"], "namespace": namespace}}
        self.owner = self.client.create(self._resource, body, manager="test")

    def run(self, *steps: str, cluster: Versioned | None = None) -> None:
        """Run functions for the owner, or for every gated pod."""
        cluster = cluster or self._connection
        for step in steps:
            of_pods = step == "patch_pods"
            kind = PODS if of_pods else self._resource
            for obj in [pod for pod in self.all(PODS) if gates(pod)] if of_pods else [self.owner]:
                name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
                ref = ObjectRef(kind.api_version, kind.kind, self.namespace, name, uid)
                reply = run_step(step_named(step), cluster, ref, lambda: NOW).reply
                if reply is not None and reply.type_suffix == "missing" and cluster is self._connection:
                    self.run("create_pod_groups")  # the reply of a run that is stopped is lost

    def until(self, holds: Callable[[], object], *steps: str) -> None:
        """Run functions until a condition holds."""
        end = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < end, self.numbers()
            self.run(*steps)
            time.sleep(0.02)

    def all(self, resource: Resource) -> list[Object]:
        """Return the objects of a kind."""
        return self.client.list(resource, self.namespace)

    def scale(self, pods: int) -> None:
        """Set parallelism of the Job; its completions stay."""
        name, spec = self.owner["metadata"]["name"], {"spec": {"parallelism": pods}}
        self.client.patch(JOBS, name, self.namespace, spec, patch=PatchType.MERGE, manager="test")

    def suspend(self, *, suspended: bool = True) -> None:
        """Suspend or resume the Job, and wait until its pods are gone."""
        name, spec = self.owner["metadata"]["name"], {"spec": {"suspend": suspended}}
        self.client.patch(JOBS, name, self.namespace, spec, patch=PatchType.MERGE, manager="test")
        if suspended:
            self.until(lambda: not self.all(PODS))

    def end(self, phase: str, *pods: Object) -> None:
        """Let pods succeed or fail."""
        how: Any = {"patch": PatchType.MERGE, "manager": "test", "subresource": "status"}
        for pod in pods:
            self.client.patch(
                PODS, pod["metadata"]["name"], self.namespace, {"status": {"phase": phase}}, **how
            )

    def live(self, label: str = "") -> list[Object]:
        """Return the running pods by name; all, or those of a group."""
        return [
            pod
            for pod in sorted(self.all(PODS), key=lambda pod: str(pod["metadata"]["name"]))
            if pod["status"].get("phase") == "Running"
            and "deletionTimestamp" not in pod["metadata"]
            and label in ("", pod["metadata"]["labels"].get(GROUP))
        ]

    def numbers(self) -> dict[str, int]:
        """Return minCount or minGroupCount of every group and of the Workload's templates."""
        sizes: dict[str, int] = {}
        for obj in (*self.all(POD_GROUPS), *self.all(COMPOSITE_POD_GROUPS)):
            label = obj["metadata"]["name"].split("-")[1]
            sizes[f"{obj['kind']} {label}"] = _number(obj["spec"])
        (workload,) = self.all(WORKLOADS)
        return sizes | {
            f"template {template['name']}": _number(template) for template in _templates(workload["spec"])
        }


def _number(spec: Object) -> int:
    gang = spec["schedulingPolicy"].get("gang") or {}
    return int(gang.get("minGroupCount") or gang.get("minCount") or 0)


def _templates(level: Object) -> Iterator[Object]:
    for template in level.get("podGroupTemplates") or []:
        yield template
    for template in level.get("compositePodGroupTemplates") or []:
        yield template
        yield from _templates(template)


def a_job(pods: int) -> Object:
    """Return an Indexed Job of six completions with this parallelism."""
    job = owners.a_job("sweep", pods=pods, labels={GROUP: "main"})
    job["spec"]["completions"] = 6
    return job


@dataclass(frozen=True)
class SizeChange:
    """A change that makes resize_gang write.

    The numbers are minCount and minGroupCount in the end; `writes` are those of resize_gang.
    """

    owner: Object
    pods: int
    happens: Callable[[ManualPipeline], None]
    numbers: dict[str, int]
    live: int
    writes: int


def scaled(before: int, after: int) -> SizeChange:
    """A Job is scaled."""

    def happens(world: ManualPipeline) -> None:
        world.scale(after)
        world.until(lambda: len(world.live()) == after, "patch_pods")

    count = max(1, after)
    return SizeChange(
        a_job(before), before, happens, {"PodGroup main": count, "template main": count}, after, 2
    )


def resumed(world: ManualPipeline) -> None:
    """A Job is suspended, loses its group, and is resumed."""
    world.suspend()
    world.until(lambda: not world.all(POD_GROUPS), "resize_gang")
    world.suspend(suspended=False)


def restarted_after_a_sibling_ended(world: ManualPipeline) -> None:
    """Decode ends and minGroupCount falls; then prefill fails, and the whole JobSet restarts."""
    world.end("Succeeded", *world.live("decode"))
    world.until(lambda: world.numbers()["CompositePodGroup chat"] == 1, "resize_gang")
    before = {pod["metadata"]["uid"] for pod in world.all(PODS)}
    world.end("Failed", world.live("prefill")[0])
    world.until(lambda: len({pod["metadata"]["uid"] for pod in world.all(PODS)} - before) == 4, "patch_pods")


CHANGES = {
    "a Job is scaled up": scaled(2, 4),
    "a Job is scaled to nothing": scaled(3, 0),
    "a Job is suspended": SizeChange(a_job(3), 3, ManualPipeline.suspend, {"template main": 3}, 0, 1),
    "a Job is resumed": SizeChange(a_job(3), 3, resumed, {"PodGroup main": 3, "template main": 3}, 3, 0),
    "a gang of gangs is restarted after its minGroupCount fell": SizeChange(
        chat(),
        4,
        restarted_after_a_sibling_ended,
        {
            **{f"template {name}": 2 for name in ("chat", "prefill", "decode")},
            **dict.fromkeys(("PodGroup prefill", "PodGroup decode", "CompositePodGroup chat"), 2),
        },
        4,
        4,
    ),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    """An embedded cluster without Muster's functions."""
    with ApiServer() as server:
        policies = [body for body in manifests.load() if body["kind"].startswith("MutatingAdmissionPolicy")]
        nodes = [node(name, cpu="500") for name in ("node-1", "node-2")]
        server.load([*resource_definitions(), *policies, *nodes])
        fast = KubeletOptions(run_delay=0.02, delete_delay=0.02)
        with Controllers(server.url, kubelet=fast):
            yield server


@pytest.fixture(scope="module")
def recorder(server: ApiServer) -> Iterator[TimelineRecorder]:
    """The recorder of the embedded cluster."""
    with TimelineRecorder(Direct.to(server), (*KINDS, COMPOSITE_POD_GROUPS)) as recorder:
        yield recorder


NUMBERS = itertools.count(1)


@pytest.mark.parametrize("comes", [("resize_gang", "patch_pods"), STEPS], ids=["an event", "a sweep"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_a_resize_may_be_stopped_anywhere(
    server: ApiServer, recorder: TimelineRecorder, change: SizeChange, comes: tuple[str, ...]
) -> None:
    """After any number of writes the sizes become right, all pods run, and no gang is ever partly bound."""
    for writes in range(change.writes + 1):
        world = ManualPipeline(server, f"stop-{next(NUMBERS)}", change.owner)
        _stopped_after(writes, world, change, comes)
        history = recorder.history(world.namespace)
        assert history
        assert [breach for law in LAWS for breach in law(history)] == []


def _stopped_after(writes: int, world: ManualPipeline, change: SizeChange, comes: tuple[str, ...]) -> None:
    world.until(lambda: len(world.live()) == change.pods, *STEPS)
    change.happens(world)
    cut_off = Stopped(world.server, writes)
    world.run("resize_gang", cluster=cut_off)
    assert cut_off.stopped == (writes < change.writes), f"{writes} writes: {world.numbers()}"
    world.run("patch_pods")  # its events come whether or not anything was repaired
    world.until(lambda: world.numbers() == change.numbers and len(world.live()) == change.live, *comes)
