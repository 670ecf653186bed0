"""The functions that one process serves: each at a path of its own, a single one also at `/`."""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Self

from muster.cluster.interface import RawCluster
from muster.runtime import config, dead_letter
from muster.runtime.config import Settings
from muster.runtime.dead_letter import DeadLetters
from muster.runtime.handle import Handler
from muster.runtime.http import responses
from muster.runtime.http.app import app_of, app_of_all, by_path, wall_clock
from muster.runtime.http.bodies import REFUSAL, BodyRefusal
from muster.runtime.http.readiness import Readiness, State
from muster.runtime.http.receiver import Receiver
from muster.runtime.http.responses import HttpAnswer
from muster.runtime.sharing.computing import EventLoop
from muster.runtime.sharing.workers import Workers
from muster.runtime.step import Step

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

GARBAGE_THRESHOLDS = (20_000, 20, 50)
"""New objects before a collection of the youngest, and collections before one of the next generation; Python
begins with 700, 10 and 10."""

NAME = "muster"
"""The name of a process with several functions."""


class ServedFunctions:
    """Functions behind one server.

    Args:
        functions: each with the cluster whose API server its readiness asks.
        loop: for which events and sweeps wait if it is late; None if they wait for none.

    Attributes:
        name: the name of the only function, or `muster` for several.
        settings: the settings of the process.
        loop: the event loop of the server, if it has one.
    """

    def __init__(self, *functions: tuple[Receiver, RawCluster], loop: EventLoop | None = None) -> None:
        self._receivers = [receiver for receiver, _ in functions]
        self._readiness = {receiver.name: Readiness.of(receiver, cluster) for receiver, cluster in functions}
        self.settings = self._receivers[0].settings
        self.loop = loop or EventLoop()
        self._by_path = {path_of(receiver.name): receiver for receiver in self._receivers}
        apps = {path: app_of(one, self._readiness[one.name]) for path, one in self._by_path.items()}
        if len(functions) == 1:
            self.name, others = self._receivers[0].name, *apps.values()
        else:
            self.name = NAME
            others = app_of_all(list(apps), self.recent, [one.metrics for one in self._receivers])
        self._app = by_path(apps, others)

    @classmethod
    def connected(cls, steps: Sequence[Step], settings: Settings, *, dead_letters: bool = False) -> Self:
        """Steps, and the store of dead letters, connected to the cluster of the settings.

        Several of them share their workers, so that together they do no more at once than one would alone.
        Each gets an equal part of the memory for sweeps.

        Raises:
            BadSettingError: the settings name no cluster, or a kubeconfig that cannot be used.
        """
        workers = Workers(settings.workers, settings.waiting, settings.most_in_work)
        functions: list[tuple[Receiver, RawCluster]] = []
        for step in steps:
            cluster = config.connect(settings, user_agent=step.manager)
            functions.append((Handler(step, cluster, settings, wall_clock, workers=workers), cluster))
        if dead_letters:
            cluster = config.connect(settings, user_agent=dead_letter.MANAGER)
            functions.append((DeadLetters(cluster, settings, wall_clock, workers), cluster))
        return cls(*functions, loop=workers.loop)

    def app(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request: the WSGI app."""
        refusal = environ.get(REFUSAL)
        if refusal is not BodyRefusal.NO_THREAD:
            return self._app(environ, start_response)
        headers = {
            name[5:].replace("_", "-"): value for name, value in environ.items() if name[:5] == "HTTP_"
        }
        length = environ.get("CONTENT_LENGTH")
        answer = self.refuse(environ["REQUEST_METHOD"], environ["PATH_INFO"], headers, refusal, length)
        start_response(f"{answer.status} {HTTPStatus(answer.status).phrase}", list(answer.headers.items()))
        return [answer.body]

    def refuse(
        self, method: str, path: str, headers: Mapping[str, str], refusal: BodyRefusal, length: str | None
    ) -> HttpAnswer:
        """Return the answer to a request that the app does not get, counted and logged if it is an event.

        Args:
            method: of the request, as `path`, without a query, and `headers`.
            path: names the function where the process serves several.
            headers: names in any case.
            refusal: why it is refused.
            length: its Content-Length.
        """
        size = int(length) if length and length.isdecimal() else None
        first = path.removeprefix("/").partition("/")[0]
        receiver = self._receivers[0] if len(self._receivers) == 1 else self._by_path.get(first)
        if receiver is None or method != "POST":
            outcome = responses.of_refusal(refusal, self.settings, size)
            return responses.answer(outcome, None, self.settings.retry_after_seconds)
        return receiver.refuse(headers, refusal, size)

    def recent(self) -> State:
        """Return the readiness of all functions; see `Readiness.recent`."""
        return _together({name: readiness.recent() for name, readiness in self._readiness.items()})

    def last_known(self) -> State:
        """Return the cached readiness of all functions, at once; see `Readiness.last_known`."""
        return _together({name: readiness.last_known() for name, readiness in self._readiness.items()})

    def wait_until_idle(self) -> None:
        """Wait until no event is in work, at most until the deadline of an event that has just begun."""
        end = time.monotonic() + self.settings.deadline_seconds
        for receiver in self._receivers:
            receiver.in_flight.wait_until_none(max(0.0, end - time.monotonic()))


def prepare_process() -> None:
    """Let a process of functions open as many files as the system allows, and collect garbage rarely.

    As programs in Go do, it raises the soft limit of open files, which is often 1024. Objects that exist by
    now stay until the end, and are left out of collections, which an event of 50,000 values would begin again
    and again: they took half of the time of its JSON.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE_THRESHOLDS)


def path_of(name: str) -> str:
    """Return the first part of the path of a function: `create-workload`."""
    return name.replace("_", "-")


def _together(states: Mapping[str, State]) -> State:
    """Ready if all functions are; the message of each that has one, or of all if it is the same."""
    ready = all(is_ready for is_ready, _ in states.values())
    messages = {message for _, message in states.values()}
    if len(messages) == 1:
        return ready, messages.pop()
    lines = (f"{path_of(name)}: {message}" for name, (_, message) in states.items() if message != "OK")
    return ready, "; ".join(lines)
