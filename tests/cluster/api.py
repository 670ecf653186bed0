"""A minimal HTTP client of a Kubernetes API, for contract cases, stories and the cluster fixtures."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"


@dataclass(frozen=True)
class ApiResponse:
    """The answer to a request: reason and message of an error's Status, and JSON, else text, as body."""

    status: int
    reason: str
    message: str
    body: Any

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def causes(self) -> list[tuple[str, str]]:
        """Reason and field of each cause that the Status object of an error names, each pair once."""
        details = self.body.get("details") or {} if isinstance(self.body, dict) else {}
        return list(dict.fromkeys((cause["reason"], cause["field"]) for cause in details.get("causes") or []))


class Refused(AssertionError):
    """A request that must succeed was refused."""


@dataclass(frozen=True)
class KubernetesApi:
    """A client of one server, as one user."""

    server: str
    token: str = ""
    certificate_authority: str = ""

    @classmethod
    def from_kubeconfig(cls, path: Path) -> KubernetesApi:
        """Return the client of a kubeconfig with one cluster and one user, in JSON (see `credentials`)."""
        config = json.loads(path.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
        return cls(cluster["server"], user.get("token", ""), authority)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """Send a request and return the answer, whatever its status; a body of bytes is sent as it is."""
        connection = self._connect(timeout=30)
        try:
            response = self._send(connection, method, path, body, content_type, query)
            return _answer(response.status, response.read())
        finally:
            connection.close()

    def must(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request that must succeed, and return the body of the answer."""
        answer = self.request(method, path, body, content_type, query)
        if not answer.ok:
            raise Refused(
                f"{method} {path}: {answer.status} {answer.reason}: {answer.message or answer.body}"
            )
        return answer.body

    def apply(self, path: str, body: Mapping[str, Any]) -> Any:
        """Create or update an object by server-side apply; ``path`` is that of its collection."""
        query = {"fieldManager": "muster-tests", "force": "true"}
        return self.must("PATCH", f"{path}/{body['metadata']['name']}", dict(body), APPLY, query)

    def watch(
        self,
        path: str,
        resource_version: str = "",
        seconds: int = 600,
        connected: Callable[[http.client.HTTPConnection], None] = lambda _: None,
    ) -> Iterator[dict[str, Any]]:
        """Yield watch events (``{"type": …, "object": …}``) until the server ends the stream.

        `connected` is called with the connection, so that another thread can close it.
        """
        query = {"watch": "true", "timeoutSeconds": str(seconds)}
        if resource_version:
            query["resourceVersion"] = resource_version
        connection = self._connect(timeout=seconds + 30)
        try:
            response = self._send(connection, "GET", path, None, JSON, query)
            connected(connection)
            while line := response.readline():
                yield json.loads(line)
        finally:
            connection.close()

    def ready(self) -> bool:
        """Return whether ``/readyz`` answers exactly ``ok``.

        Before the bootstrap roles exist it answers otherwise, also 200 with a list of checks; components that
        start then are refused by RBAC and exit.
        """
        try:
            answer = self.request("GET", "/readyz")
        except OSError:
            return False
        return answer.status == 200 and answer.body == "ok"

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        address = urlsplit(self.server)
        host, port = address.hostname or "127.0.0.1", address.port
        if address.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=timeout)
        context = ssl.create_default_context(cadata=self.certificate_authority)
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=context)

    def _send(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: Any,
        content_type: str,
        query: Mapping[str, str] | None,
    ) -> http.client.HTTPResponse:
        headers = {"Accept": JSON, "Content-Type": content_type}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        target = f"{path}?{urlencode(query)}" if query else path
        payload = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, target, payload, headers)
        return connection.getresponse()


def _answer(status: int, payload: bytes) -> ApiResponse:
    try:
        text = payload.decode(errors="replace")  # managedFields may have bytes that are no UTF-8
        body = json.loads(text)
    except ValueError:
        return ApiResponse(status, "", "", text)
    if status >= 400 and isinstance(body, dict):
        return ApiResponse(status, body.get("reason", ""), body.get("message", ""), body)
    return ApiResponse(status, "", "", body)
