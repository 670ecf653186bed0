"""A step and a cluster small enough to see through, and one event for them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from flask.testing import FlaskClient

from muster.cluster.interface import Object, Objects
from muster.objects.meta import ObjectRef
from muster.objects.resources import PODS, Resource, by_kind
from muster.policy.model import Action, Plan, Reply, Verb
from muster.policy.reasons import Reason
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.serve import Functions
from muster.runtime.step import Step

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
POD = ObjectRef("v1", "Pod", "team-a", "llama-0", "4bac6118")
OWNER = ObjectRef("batch/v1", "Job", "team-a", "llama", "9c1d")
BODY: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "llama-0", "namespace": "team-a", "uid": "4bac6118"},
}


class FakeCluster:
    """Raises the configured errors, else says yes; remembers its calls."""

    policy_namespace = "muster-system"
    expects_new = False
    scheduling: Any = None

    def __init__(self, on_read: Exception | None = None, on_write: Exception | None = None) -> None:
        self.on_read = on_read
        self.on_write = on_write
        self.calls: list[str] = []
        self.served = frozenset({"v1beta1/workloads", "v1beta1/podgroups"})

    def refresh(self) -> None:
        """Remember that it was asked for."""
        self.calls.append("refresh")

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The pod, whatever is asked for."""
        self._read(f"get {resource.plural} {namespace}/{name}")
        return BODY

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """The pod alone."""
        self._read(f"list {resource.plural} {namespace}{labels}{fields}{as_of}")
        return [BODY]

    def served_versions(self, group: str) -> frozenset[str]:
        """What `served` says."""
        self._read(f"discover {group}")
        return self.served

    def write(self, action: Action, manager: str) -> Object:
        """What was sent; a review of a permission is granted."""
        target = action.target
        self.calls.append(f"{action.verb} {by_kind(target.api_version, target.kind).plural} {manager}")
        if self.on_write:
            raise self.on_write
        return {**(action.body or {}), "status": {"allowed": True}}

    def _read(self, call: str) -> None:
        self.calls.append(call)
        if self.on_read:
            raise self.on_read


DONE = Plan(
    Reason.GATES_LIFTED,
    "2 gates lifted",
    (Action(Verb.CREATE, POD, BODY), Action(Verb.CREATE, POD, BODY)),
    reply=Reply("gates_lifted", OWNER, {"pods": 2}),
)


def observe(cluster: Any, subject: ObjectRef) -> ObjectRef:
    """One read; the plans of these tests need to know only of which object."""
    cluster.get(PODS, subject.name, subject.namespace)
    return subject


def execute(cluster: Any, plan: Plan, manager: str) -> Plan:
    """One write for each action."""
    for action in plan.actions:
        cluster.write(action, manager)
    return plan


def a_step(**parts: Any) -> Step:
    """A step that reads the event's pod and writes it twice; each part can be replaced."""
    usual: dict[str, Any] = {
        "name": "patch_pods",
        "predicate": lambda event: event.ref,
        "observe": observe,
        "plan": lambda _inputs, _now: DONE,
        "execute": execute,
        "swept": lambda _cluster, namespace: [POD] if namespace else [],
    }
    return Step(**usual | parts)


def a_handler(step: Step | None = None, cluster: Any = None, **settings: Any) -> Handler:
    """A handler of that step, at a fixed time."""
    return Handler(step or a_step(), cluster or FakeCluster(), Settings(**settings), lambda: NOW)


def a_client(step: Step | None = None, cluster: Any = None, **settings: Any) -> FlaskClient:
    """A client of the app of that step."""
    return Functions(a_handler(step, cluster, **settings)).app.test_client()


def an_event(**change: Any) -> tuple[dict[str, str], bytes]:
    """An ApiServerSource event about the pod, in binary mode, as headers and body."""
    attributes = {
        "specversion": "1.0",
        "id": "421c",
        "source": "https://10.96.0.1:443",
        "type": "dev.knative.apiserver.resource.update",
    } | change
    headers = {f"ce-{name}": value for name, value in attributes.items()}
    return headers | {"content-type": "application/json"}, json.dumps(BODY).encode()


def raises(error: Exception) -> Callable[..., Any]:
    """A function that raises it, whatever it is called with."""

    def fail(*_arguments: Any, **_named: Any) -> Any:
        raise error

    return fail


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)
