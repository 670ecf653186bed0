"""`ApiServer` with its start, stop, faults and counters, and `serve` for a process of its own."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

from muster.simulator.apiserver.api import ApiBackend, Intercept
from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.http.http_server import HttpServer
from muster.simulator.apiserver.http.requests import ADMINISTRATOR, Request
from muster.simulator.apiserver.objects import Object

RELEASES = ("1.37", "1.36")
_STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class ApiServer:
    """A Kubernetes API server in memory over plain HTTP; it listens on loopback.

    It checks neither identities nor permissions: a bearer token is taken for the name of the user, which
    admission policies see, and a request without a token comes from `kubernetes-admin`.

    It serves the kinds that Muster, its simulated controllers and kubectl need, and validates as the real
    server does, with the same messages. `tests/contract` runs the same cases against both.

    Args:
        port: 0 picks a free port.
        host: the address to listen on.
        gates: feature gates and served versions; the property may be set while the server runs.
        release: `1.37`, or `1.36`, which serves scheduling.k8s.io/v1alpha2.

    Raises:
        ValueError: the release is unknown.
    """

    def __init__(
        self, port: int = 0, host: str = "127.0.0.1", gates: Gates | None = None, release: str = "1.37"
    ) -> None:
        if release not in RELEASES:
            raise ValueError(f"release {release}: known are {', '.join(RELEASES)}")
        self._api = ApiBackend(release, gates or Gates())
        self._address = host, port
        self._server: HttpServer | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Start serving; requests are answered once this returns."""
        self._server = HttpServer(self._address, self._api)
        self._address = self._server.server_address[0], self._server.server_address[1]  # type: ignore[assignment]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="apiserver", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening and end every watch and connection; the objects remain readable."""
        if self._server is None or self._thread is None:
            return
        self._api.stopped.set()
        self._server.shutdown()
        self._server.close_connections()
        self._server.server_close()
        self._thread.join()
        self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """The base URL: `http://127.0.0.1:41234`."""
        return f"http://{self._address[0]}:{self._address[1]}"

    @property
    def gates(self) -> Gates:
        """The feature gates; assigning others takes effect with the next request."""
        return self._api.gates

    @gates.setter
    def gates(self, gates: Gates) -> None:
        self._api.gates = gates

    @property
    def intercept(self) -> Intercept | None:
        """A hook for fault injection, called before every request under /api and /apis.

        It gets the `Request` and returns None to let it through, or (status, headers, body) to answer in its
        place, where the body is bytes or an object to encode. It may sleep.
        """
        return self._api.intercept

    @intercept.setter
    def intercept(self, intercept: Intercept | None) -> None:
        self._api.intercept = intercept

    def answer(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Handle a request without HTTP."""
        response = self._api.handle(Request(method, path, query, headers, body))
        return response.status, response.encoded(), response.headers

    def calls(self) -> Counter[tuple[str, str, str]]:
        """Return the requests counted by (user agent, verb, resource): `("muster", "patch", "jobs/status")`.

        The verbs are those of Kubernetes: get, list, watch, create, update, patch, delete, deletecollection.
        Discovery is not counted.
        """
        return self._api.calls()

    def forget_calls(self) -> None:
        """Reset the counters of `calls`."""
        self._api.forget_calls()

    def forget_history(self) -> None:
        """Drop the history of changes as a compaction of etcd does: older watches and lists get 410."""
        self._api.store.forget_history()

    def load(self, objects: Iterable[Object]) -> None:
        """Store recorded objects unchanged.

        uid, resourceVersion, status and times are kept; admission, validation and garbage collection are
        skipped. Missing namespaces are created. CustomResourceDefinitions among the objects are served before
        the other objects are decoded.
        """
        self._api.load(objects)

    def apply(self, obj: Object) -> None:
        """Create or update an object as `kubectl apply --server-side` does, with admission and validation.

        Metadata that a server sets is left out, so an exported object can be given. Its status is written
        too, and a missing namespace is created.
        """
        self._api.apply(obj)

    def snapshot(self) -> list[Object]:
        """Return every stored object; do not change them."""
        return self._api.snapshot()

    def kubeconfig(self, user: str = "") -> str:
        """Return a kubeconfig for kubectl and the client libraries, as YAML."""
        return KUBECONFIG.format(url=self.url, user=user or ADMINISTRATOR)


KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: embedded
  cluster:
    server: {url}
contexts:
- name: embedded
  context:
    cluster: embedded
    user: anybody
    namespace: default
users:
- name: anybody
  user: {{token: "{user}"}}
current-context: embedded
"""


def serve(server: ApiServer, announce: Callable[[str], object]) -> None:
    """Run a server until SIGINT or SIGTERM."""
    # A shell starts background jobs with SIGINT ignored.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Blocked before any thread starts, so that the signal stays pending until sigwait below. A handler that
    # sets an Event could deadlock: it may run while the main thread holds the Event's lock.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    with server:
        announce(server.url)
        signal.sigwait(_STOP_SIGNALS)
