"""Clusters for tests: the embedded API server alone, and the local stack with its functions."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import urllib3

from muster.cluster.http.client import Client
from muster.cluster.versioned import Versioned
from muster.local.stack import Stack, embedded_server
from muster.local.stories.laws import LAWS
from muster.local.stories.watching import KINDS, TimelineRecorder
from muster.objects.resources import by_kind
from muster.replay.activity import Activity, ActivityHandler
from muster.replay.files import RecordedRequest
from muster.replay.snapshots import Object, Objects
from muster.runtime.config import Settings
from muster.runtime.handle import Handler
from muster.runtime.step import Step
from muster.simulator.apiserver import ApiServer
from muster.simulator.direct import Direct
from muster.simulator.overlays import CLUSTER
from muster.testing.cases import sweep

__tracebackhide__ = True  # pytest shows the test and the message, not the check's source
SECONDS = 20.0
"""How long `until` and `settle` wait."""
_POLL_SECONDS = 0.02
_USER = "kubectl"


@dataclass(frozen=True)
class Delivered:
    """The answer of a function to an event.

    Attributes:
        status: the HTTP status: 202 done, 200 with a reply event, 400 unreadable, 409 or 503 come again, 500.
        reason: the reason that was logged; of a sweep, `Swept`.
        actions: how many writes were executed.
        body: the data of the reply event, or reason and message as JSON.
    """

    status: int
    reason: str
    message: str
    actions: int
    body: bytes
    headers: Mapping[str, str]


class ClusterAccess:
    """Reads and writes of a test on an embedded API server, with a client of it."""

    server: ApiServer
    client: Client

    def __init__(self) -> None:
        self._stops = ExitStack()

    def __exit__(self, *_error: object) -> None:
        self._stops.close()

    @property
    def url(self) -> str:
        """URL of the API server; it asks nobody for credentials."""
        return self.server.url

    def kubeconfig(self, user: str = "") -> str:
        """Return a kubeconfig as YAML for an administrator, or for `system:serviceaccount:NAMESPACE:NAME`."""
        return self.server.kubeconfig(user)

    def create(self, body: Object, namespace: str = "") -> Object:
        """Create an object as `kubectl create` does, admission included; return it as it is stored.

        The kind is one that Muster knows, or that was made known by `register_resource`.
        """
        resource = by_kind(body["apiVersion"], body["kind"])
        if resource.namespaced:
            place = {"namespace": namespace or body["metadata"].get("namespace") or "default"}
            body = {**body, "metadata": body["metadata"] | place}
        return self.client.create(resource, body, manager=_USER)

    def create_namespace(self, name: str, **labels: str) -> Object:
        """Create a namespace in which Jobs are grouped (label `muster.dev/gang-jobs: enabled`)."""
        metadata = {"name": name, "labels": {"muster.dev/gang-jobs": "enabled", **labels}}
        return self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})

    def load(self, *objects: Object) -> None:
        """Store objects unchanged, with uid and status and without admission, as those of a recording."""
        self.server.load(objects)

    def all(self, kind: str, namespace: str = "") -> Objects:
        """Return a copy of the objects of a kind, in one namespace or in all, by namespace and name."""
        found = [
            copy.deepcopy(body)
            for body in self.server.snapshot()
            if body["kind"] == kind and namespace in {"", body["metadata"].get("namespace", "")}
        ]
        return sorted(
            found, key=lambda body: (body["metadata"].get("namespace", ""), body["metadata"]["name"])
        )

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """Return a copy of an object, or None. The namespace may be left out if the name is unique."""
        return next((body for body in self.all(kind, namespace) if body["metadata"]["name"] == name), None)

    def until(self, what: str, condition: Callable[[], Any], seconds: float = SECONDS) -> None:
        """Wait until a condition is true; AssertionError says `what` was expected."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() >= end:
                raise AssertionError(f"not within {seconds:g} seconds: {what}")
            time.sleep(_POLL_SECONDS)

    def deliver(self, step: Step, event: RecordedRequest, now: datetime | None = None) -> Delivered:
        """Run a step for an event as its function does; without `now` the plan is of the present."""
        cluster = Versioned(Client.for_server(self.url, user_agent=step.manager))
        time_of_plan = now or datetime.now(UTC)  # noqa: TID251 - a test without a time of its own
        settings = Settings(api_server=self.url)
        activities: list[Activity] = []
        with ActivityHandler(activities.append):
            answer = Handler(step, cluster, settings, lambda: time_of_plan).handle(event.headers, event.body)
        last = activities[-1]
        return Delivered(
            answer.status, last.reason, last.message, last.actions, answer.body, dict(answer.headers)
        )


class EmbeddedCluster(ClusterAccess):
    """The embedded cluster without functions, for one test: `with EmbeddedCluster() as cluster`.

    The controllers are the simulated Trainer, JobSet controller, Job controller, scheduler and kubelets;
    admission policies are Muster's; the release of Kubernetes is `1.37` or `1.36`.
    """

    def __init__(self, *, controllers: bool = False, admission: bool = True, release: str = "1.37") -> None:
        policies = None if admission else ()
        super().__init__()
        self._running = embedded_server(controllers=controllers, policies=policies, release=release)

    def __enter__(self) -> Self:
        self.server = self._stops.enter_context(self._running)
        self.client = Direct.to(self.server, user_agent="muster-embedded")
        return self


class RunningStack(ClusterAccess):
    """The local stack of `muster run`, for one test: controllers, event sources, broker and functions.

    Attributes:
        activities: what the functions did so far.
        recorder: records every change of jobs, pods and groups.
    """

    def __init__(self, overlay: Path | None = None) -> None:
        super().__init__()
        self.activities: list[Activity] = []
        self.stack = Stack(overlay or CLUSTER, self.activities.append)
        self.recorder: TimelineRecorder

    def __enter__(self) -> Self:
        self._stops.enter_context(self.stack)
        assert self.stack.server is not None
        self.server, self.client = self.stack.server, self.stack.client
        self.recorder = self._stops.enter_context(TimelineRecorder(self.client))
        return self

    def publish(self, event: RecordedRequest) -> None:
        """Send an event to the broker, which delivers it to the functions whose triggers match."""
        headers = dict(event.headers)
        answer = urllib3.request("POST", self.stack.broker_url, body=event.body, headers=headers, timeout=10)
        assert answer.status == HTTPStatus.ACCEPTED, (
            f"the broker refused the event: {answer.status} {answer.data!r}"
        )

    def settle(self, seconds: float = SECONDS) -> None:
        """Wait until every event was answered, those about the functions' own writes included."""
        if not self.stack.settle(seconds):
            raise AssertionError(f"events are still in work after {seconds:g} seconds")

    def sweep(self) -> None:
        """Send a sweep, and wait until every function that has done anything so far has finished it."""
        before = len(self._swept())
        self.publish(sweep())
        steps = len({activity.step for activity in self.activities})
        self.until("every function has swept", lambda: len(self._swept()) >= before + max(1, steps))
        self.settle()

    def reasons(self, step: str) -> set[str]:
        """Return the reasons of all decisions of a function so far; `step` is its name, `create_workload`."""
        return {activity.reason for activity in self.activities if activity.step == step}

    def dead_letters(self) -> list[dict[str, Any]]:
        """Return the events that no retry could deliver, as JSON objects."""
        return [letter.structured() for letter in self.stack.dead_letters]

    def broken_laws(self, namespace: str = "") -> list[str]:
        """Return the violations of the laws of every story, in one namespace or in all.

        The laws: a gang is bound together or not at all, a Workload comes before its PodGroups and these
        before bindings, and no gate is removed before its PodGroup exists.
        """
        self.until("the recorder has heard of all changes", self._is_recorded)
        entries = self.recorder.history(namespace)
        return [violation for law in LAWS for violation in law(entries)]

    def _is_recorded(self) -> bool:
        now = [body for resource in KINDS for body in self.all(resource.kind)]
        return _versions(now) <= _versions(self.recorder.objects())

    def _swept(self) -> list[Activity]:
        return [
            activity for activity in self.activities if activity.trigger == "sweep" and not activity.about
        ]


def _versions(objects: Objects) -> set[tuple[str, str]]:
    return {(body["metadata"]["uid"], body["metadata"]["resourceVersion"]) for body in objects}
