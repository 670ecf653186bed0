"""The local broker and the local event source, each as a process of its own.

The broker gets events over HTTP and delivers them to one trigger; beside it the same events are sent to the
same receiver directly. The source watches an embedded API server in its process; beside it a bare watch of
the same server, and a source with a broker behind it. Delays run from the beginning of a request until the
receiver has the event, or the watch its line.
"""

from __future__ import annotations

import itertools
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from bench.figures import Environment, Figure, Measure, in_turns, samples
from bench.gangs import Event
from bench.subjects import PATIENCE, Sender, running
from muster.cluster.http.client import Client
from muster.objects.resources import JOBS
from muster.simulator.apiserver import ApiServer, resource_definitions
from muster.simulator.broker import Broker, Ingress, Wiring
from muster.simulator.source import ChangeType, Source
from tests.cluster.api import KubernetesApi
from tests.e2e.support.owners import a_job

ROUNDS = 7
ONE_BY_ONE, AT_ONCE, TOGETHER = 50, 4, 400
DIRECT, BROKER, WATCH, SOURCE, BOTH = "direct", "broker", "a watch alone", "source", "source and broker"
NAMESPACE = "bench"
SERVICE = {"ref": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "receiver"}}
MANIFESTS: list[dict[str, Any]] = [
    {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"name": "muster", "namespace": NAMESPACE},
    },
    {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": "jobs", "namespace": NAMESPACE},
        "spec": {"broker": "muster", "filters": [{"exact": {"kind": "Job"}}], "subscriber": SERVICE},
    },
    {
        "apiVersion": "sources.knative.dev/v1",
        "kind": "ApiServerSource",
        "metadata": {"name": "jobs", "namespace": NAMESPACE},
        "spec": {
            "mode": "Resource",
            "namespaceSelector": {},
            "resources": [{"apiVersion": "batch/v1", "kind": "Job"}],
        },
    },
]
"""A broker with one trigger and a source, each for Jobs."""

Round = dict[str, float]
Act = Callable[[object], None]


class Receiver:
    """An HTTP server that answers 204, and the times at which it received events.

    Attributes:
        url: its address.
        received: the time of each event (time.perf_counter) and its name.
    """

    def __init__(self) -> None:
        self.received: queue.Queue[tuple[float, str]] = queue.Queue()
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                received.put((time.perf_counter(), self.headers["ce-name"]))
                self.send_response_only(204)
                self.end_headers()

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a sender that was stopped
        self.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()

    def next(self) -> float:
        """Wait for the next event, and return when it was received."""
        return self.received.get(timeout=PATIENCE)[0]


def measure() -> Figure:
    """Return deliveries per second and delays."""
    environment = Environment.now()
    return Figure(
        name="broker",
        title="The local broker and source",
        description=" ".join((__doc__ or "").split()),
        environment=environment,
        measures=(*_of_broker(), *_of_source()),
    )


def _of_broker() -> Iterator[Measure]:
    receiver = Receiver()
    with _serving(BROKER, receiver) as url:
        senders = {DIRECT: Sender(receiver.url, 204), BROKER: Sender(url, 202)}
        relays = {name: partial(_relayed, sender, receiver) for name, sender in senders.items()}
        rounds = in_turns(relays, ROUNDS)
    yield from _measures("Broker", rounds, DIRECT)


def _relayed(sender: Sender, receiver: Receiver) -> Round:
    """Send events one after another, then several at once, until all are received."""
    event = Event.about(ChangeType.ADD, _job("gang"))
    return _round(lambda _: sender.send(event), receiver.next)


def _of_source() -> Iterator[Measure]:
    subjects = {name: partial(_watched, name) for name in (WATCH, SOURCE, BOTH)}
    yield from _measures("Source", in_turns(subjects, ROUNDS), WATCH)


def _watched(name: str) -> Round:
    """Create Jobs one after another, then several at once, until all are reported."""
    receiver = Receiver()
    with _serving(name, receiver) as url:
        if name == WATCH:
            threading.Thread(target=_watch, args=(KubernetesApi(url), receiver), daemon=True).start()
        client, numbers = Client.for_server(url), itertools.count()

        def create(_: object) -> None:
            client.create(JOBS, _job(f"gang-{next(numbers)}"), manager="bench")

        _delay(create, receiver.next)
        return _round(create, receiver.next)


def _job(name: str) -> dict[str, Any]:
    job = a_job(name, pods=4)
    return {**job, "metadata": {**job["metadata"], "namespace": NAMESPACE}}


def _watch(api: KubernetesApi, receiver: Receiver) -> None:
    for change in api.watch(JOBS.path()):
        receiver.received.put((time.perf_counter(), change["object"]["metadata"]["name"]))


def _round(act: Act, report: Callable[[], float]) -> Round:
    delays = [_delay(act, report) for _ in range(ONE_BY_ONE)]
    return {"delay": median(delays) * 1000, "four at once": _rate(act, report)}


def _delay(act: Act, report: Callable[[], float]) -> float:
    """Return the seconds from the beginning of an act until its report."""
    began = time.perf_counter()
    act(None)
    return report() - began


def _rate(act: Act, report: Callable[[], float]) -> float:
    """Act several times at once, and return how many acts are reported per second."""
    began = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(act, range(TOGETHER)))
    ended = max(report() for _ in range(TOGETHER))
    return TOGETHER / (ended - began)


def _measures(group: str, rounds: Mapping[str, Sequence[Round]], reference: str) -> Iterator[Measure]:
    for name, unit in (("delay", "ms"), ("four at once", "events/s")):
        values = samples(rounds, lambda one, name=name: one[name])  # type: ignore[misc]
        yield Measure(name, unit, values, group, reference)


@contextmanager
def _serving(what: str, receiver: Receiver) -> Iterator[str]:
    """Run a process with an API server, source or broker, and return the URL of its first part."""
    command = [sys.executable, "-m", "bench.broker", what, receiver.url]
    with TemporaryDirectory() as folder, running(command, Path(folder) / "log", {}) as subject:
        yield subject.url()


def serve(what: str, receiver: str) -> None:
    """Serve until the process is stopped; print the URL of the API server, or of the broker alone."""
    broker = Broker(Wiring.from_manifests(MANIFESTS), {"receiver": receiver})
    broker.start()
    ingress = Ingress(broker)
    ingress.start()
    url = ingress.url
    if what != BROKER:
        server = ApiServer().start()
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        server.load([*resource_definitions(), namespace])
        url = server.url
        if what != WATCH:
            sink = receiver if what == SOURCE else ingress.url
            (source,) = Source.all_of(MANIFESTS, Client.for_server(url), sink, api_server=url)
            source.start(ready_within=PATIENCE)
    print(url, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    serve(*sys.argv[1:])
