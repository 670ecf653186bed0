"""The embedded Kubernetes API server: start it, point a client at it, ask what was asked of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self

from muster.simulator.apiserver.api import Api, Intercept
from muster.simulator.apiserver.gates import Gates
from muster.simulator.apiserver.http import Server
from muster.simulator.apiserver.objects import Object
from muster.simulator.apiserver.requests import Request

RELEASES = ("1.37", "1.36")


class ApiServer:
    """A Kubernetes API server in memory, over plain HTTP, without authentication; loopback is the fence.

    It serves the kinds that Muster, its simulated controllers and kubectl need, and refuses what the real one
    refuses, in the same words where anybody relies on them. `tests/contract` runs the same cases on both.

    Args:
        port: 0 picks a free one.
        host: the address to listen on.
        gates: feature gates and served versions; `gates` may be replaced while the server runs.
        release: `1.37` or `1.36`, which serves scheduling.k8s.io/v1alpha2.
    """

    def __init__(
        self, port: int = 0, host: str = "127.0.0.1", gates: Gates | None = None, release: str = "1.37"
    ) -> None:
        if release not in RELEASES:
            raise ValueError(f"release {release}: known are {', '.join(RELEASES)}")
        self._api = Api(release, gates or Gates())
        self._address = host, port
        self._server: Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> Self:
        """Listen; when this returns, requests are answered.

        Raises:
            OSError: the port is taken.
        """
        self._server = Server(self._address, self._api)
        self._address = self._server.server_address[0], self._server.server_address[1]  # type: ignore[assignment]
        self._api.address = f"{self._address[0]}:{self._address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, name="apiserver", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening and end every watch and connection; the objects stay and can be asked for."""
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
        """Where it is: `http://127.0.0.1:41234`."""
        return f"http://{self._address[0]}:{self._address[1]}"

    @property
    def gates(self) -> Gates:
        """The feature gates; assigning others changes what is served from the next request on."""
        return self._api.gates

    @gates.setter
    def gates(self, gates: Gates) -> None:
        self._api.gates = gates

    @property
    def intercept(self) -> Intercept | None:
        """Asked before every request under /api and /apis: may answer instead, or delay it.

        It gets the `Request` and returns None to let it pass, or (status, headers, body), where the body is
        bytes or an object to encode. For faults in tests: 401, 403, 409, 429 with Retry-After, 500, slowness.
        """
        return self._api.intercept

    @intercept.setter
    def intercept(self, intercept: Intercept | None) -> None:
        self._api.intercept = intercept

    def answer(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """What a request is answered, without HTTP: status, body and headers beside those of the body.

        Args:
            method: GET, POST, PUT, PATCH or DELETE.
            path: quoted as in a URL.
            query: each parameter once; `watch` is not answered here.
            headers: by lower-case name.
            body: as it would be sent.
        """
        answer = self._api.handle(Request(method, path, query, headers, body))
        return answer.status, answer.encoded(), answer.headers

    def calls(self) -> Counter[tuple[str, str, str]]:
        """How often each (user agent, verb, resource) was asked for: `("muster", "patch", "jobs/status")`.

        Verbs are Kubernetes': get, list, watch, create, update, patch, delete, deletecollection.
        Discovery is not counted.
        """
        return self._api.calls()

    def forget_calls(self) -> None:
        """Start counting anew."""
        self._api.forget_calls()

    def forget_history(self) -> None:
        """Forget past changes as a compaction does: watches and lists from before are answered with 410."""
        self._api.store.forget_history()

    def load(self, objects: Iterable[Object]) -> None:
        """Put recorded objects in as they are.

        uid, resourceVersion, status and times are kept, admission and rules are skipped, and nothing is
        collected for want of an owner. Namespaces that are missing are made. CustomResourceDefinitions among
        the objects are served before the rest is read.

        Raises:
            LookupError: an object's kind is not served.
        """
        self._api.load(objects)

    def snapshot(self) -> list[Object]:
        """Every object there is; to be read, not changed."""
        return self._api.snapshot()

    def kubeconfig(self) -> str:
        """A kubeconfig for kubectl and the client libraries, as YAML."""
        return KUBECONFIG.format(url=self.url)


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
  user: {{}}
current-context: embedded
"""
