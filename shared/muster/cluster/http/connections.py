"""HTTP requests to an API server over the connection pool of the `kubernetes` package."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from pydantic_core import from_json

from muster.cluster import errors
from muster.cluster.http.deadline import seconds_left

CONNECTIONS = 64
"""The most connections that are kept open; the package keeps five for each CPU."""
CONNECT_SECONDS = 2.0
READ_SECONDS, LEAST_READ_SECONDS = 5.0, 0.1
"""How long an answer may take, and the minimum just before the deadline of an event."""


class Connections:
    """Connections to an API server; safe to share between threads."""

    def __init__(self, configuration: Configuration, user_agent: str) -> None:
        # With respect_retry_after_header urllib3 turns a 429 or 503 into an error of its own.
        configuration.retries = urllib3.Retry(
            total=1, connect=1, read=0, redirect=0, status=0, other=0, respect_retry_after_header=False
        )
        configuration.connection_pool_maxsize = CONNECTIONS
        # A proxy that was set: else the package looks for one in the environment at every request.
        configuration.proxy = configuration.proxy
        self._configuration = configuration
        self._pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager
        self._user_agent = user_agent

    @property
    def url(self) -> str:
        """The URL of the API server, without user name and password: it is printed and recorded."""
        parts = urlsplit(str(self._configuration.host))
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def receive(
        self, method: str, path: str, query: Mapping[str, str], body: Any, content_type: str
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Send a request; returns status, body and headers, also of an error."""
        seconds = min(READ_SECONDS, max(LEAST_READ_SECONDS, seconds_left()))
        response = self.open(method, path, query, body, seconds, content_type)
        try:
            return response.status, response.data, response.headers
        except urllib3.exceptions.HTTPError as error:
            raise errors.Unavailable(f"{method} {path}: {error}") from error
        finally:
            response.release_conn()

    def open(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        read_seconds: float,
        content_type: str = "application/json",
    ) -> urllib3.BaseHTTPResponse:
        """Send a request; returns the response, whose body is still to be read."""
        headers = {"Accept": "application/json", "User-Agent": self._user_agent} | self._credentials()
        if body is not None:
            headers["Content-Type"] = content_type
        parameters = urlencode({name: value for name, value in query.items() if value})
        url = f"{str(self._configuration.host).rstrip('/')}{path}"
        try:
            return self._pool.request(
                method,
                f"{url}?{parameters}" if parameters else url,
                body=None if body is None else json.dumps(body, separators=(",", ":")).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=min(CONNECT_SECONDS, read_seconds), total=read_seconds),
                preload_content=False,
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise errors.Unavailable(f"{method} {path}: {error}") from error

    def _credentials(self) -> dict[str, str]:
        """Return the headers with the credentials, without the newline that files end in."""
        return {
            setting["key"]: setting["value"].strip()
            for setting in self._configuration.auth_settings().values()
            if setting["in"] == "header" and setting["value"]
        }


def parsed(content: bytes) -> Any:
    """Return the parsed JSON of an answer; its text if it is no JSON.

    A lone surrogate, which the API server stores in a tenant's object as the escape of half a character, is
    "?": it would make a whole list unreadable.
    """
    with suppress(ValueError):
        return from_json(content)
    text = content.decode(errors="replace")
    with suppress(ValueError, RecursionError):
        return json.loads(json.dumps(json.loads(text), ensure_ascii=False).encode(errors="replace"))
    return text
