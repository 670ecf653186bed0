"""HTTP requests to an API server over kept connections, configured by the `kubernetes` package."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from io import BytesIO
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject

from muster.cluster import errors
from muster.cluster.http import tls
from muster.cluster.http.answer_json import (
    LARGE_ANSWER,
    MOST_VALUES,
    has_too_many_values,
    wait_before_large_answer,
)
from muster.cluster.http.answers import parts_of
from muster.cluster.http.deadline import seconds_left

CONNECTIONS = 64
"""The most connections that are kept open: at least the workers of a function.

The package keeps five for each CPU; every call beyond those would cost a connection and a TLS handshake.
"""
MOST_BYTES = 64 * 1024 * 1024
"""The most of one answer that is read; etcd stores objects of 1.5 MiB."""
CONNECT_SECONDS = 2.0
READ_SECONDS = 5.0
"""Less than a trigger waits for its function (PT10S in eventing/triggers)."""
ANSWER_SECONDS = 30.0
"""The longest time for the body of an answer, of which parts come within READ_SECONDS each."""
LEAST_READ_SECONDS = 0.1
"""The minimum, so that a call just before the deadline can still succeed."""


class Connections:
    """Connections to an API server; safe to share between threads.

    Args:
        configuration: the API server's address, TLS settings and credentials.
        user_agent: the caller's name in the API server's audit log.
        keep_certificates: whether certificates are loaded once; else each connection reads the files again,
            because those of a pod may be renewed.
    """

    def __init__(
        self, configuration: Configuration, user_agent: str, *, keep_certificates: bool = False
    ) -> None:
        # With respect_retry_after_header urllib3 turns a 429 or 503 with Retry-After into an error of its
        # own.
        configuration.retries = urllib3.Retry(
            total=1, connect=1, read=0, redirect=0, status=0, other=0, respect_retry_after_header=False
        )
        configuration.connection_pool_maxsize = CONNECTIONS
        if _is_loopback(urlsplit(configuration.host).hostname or ""):
            # The package takes HTTP_PROXY for every host that NO_PROXY does not name.
            configuration.proxy = None
        self._configuration = configuration
        keeps = keep_certificates and urlsplit(configuration.host).scheme == "https"
        manager: urllib3.PoolManager = (
            tls.manager_of(configuration) if keeps else RESTClientObject(configuration).pool_manager
        )
        # The manager would look the pool up again for each request, by a key of all TLS settings.
        self._pool = manager.connection_from_url(configuration.host)
        url = urlsplit(configuration.host)
        # Without TLS a proxy is told the whole URL.
        whole = isinstance(manager, urllib3.ProxyManager) and url.scheme == "http"
        self._prefix = self.url if whole else url.path.rstrip("/")
        self._user_agent = user_agent

    @property
    def url(self) -> str:
        """The URL of the API server, without user name and password: it is printed and recorded."""
        parts = urlsplit(str(self._configuration.host))
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def receive(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Any,
        content_type: str,
        *,
        most_bytes: int | None = None,
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Send a request; returns status, body and headers, also of an error.

        It waits READ_SECONDS, or until the caller's deadline (`muster.cluster.http.deadline`).

        Raises:
            AnswerTooLarge: the body has more than MOST_VALUES values; or it has more than `most_bytes`, or
                MOST_BYTES, and the rest of it is not read.
            Unauthorized: the credentials cannot be sent.
        """
        most_bytes = MOST_BYTES if most_bytes is None else most_bytes
        seconds = min(READ_SECONDS, max(LEAST_READ_SECONDS, seconds_left()))
        response = self.open(method, path, query, body, seconds, content_type)
        try:
            content = read_body(response, most_bytes + 1, f"{method} {path}")
            if len(content) > most_bytes:
                raise errors.AnswerTooLarge(f"{method} {path}: more than {most_bytes} bytes")
        except errors.ClusterError:
            response.close()  # what is left would be taken for the next answer on this connection
            raise
        except urllib3.exceptions.HTTPError as error:
            raise errors.Unavailable(f"{method} {path}: {error}") from error
        finally:
            response.release_conn()
        if has_too_many_values(content):
            raise errors.AnswerTooLarge(f"{method} {path}: more than {MOST_VALUES} values")
        return response.status, content, response.headers

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
        try:
            return self._pool.urlopen(
                method,
                f"{self._prefix}{path}" + (f"?{parameters}" if parameters else ""),
                body=None if body is None else json.dumps(body, separators=(",", ":")).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=min(CONNECT_SECONDS, read_seconds), total=read_seconds),
                preload_content=False,
                redirect=False,
                assert_same_host=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise errors.Unavailable(f"{method} {path}: {error}") from error

    def _credentials(self) -> dict[str, str]:
        """Return the headers with the credentials, without the blanks and the newline that files end in.

        Raises:
            Unauthorized: they have expired and cannot be renewed; or they have characters that no header may
                have, and urllib3's error would have, too.
        """
        try:
            settings = self._configuration.auth_settings()
        except Exception as error:  # noqa: BLE001 - the package raises any kind for odd answers of an exec plugin
            raise errors.Unauthorized(f"no new credentials: {error}") from None
        headers = {
            setting["key"]: setting["value"].strip()
            for setting in settings.values()
            if setting["in"] == "header" and setting["value"]
        }
        if not all(value.isascii() and value.isprintable() for value in headers.values()):
            raise errors.Unauthorized("the token has characters that no HTTP header may have")
        return headers


def read_body(response: urllib3.BaseHTTPResponse, most_bytes: int, request: str) -> bytes:
    """Return the first bytes of an answer, at most so many; wait before more than LARGE_ANSWER is read.

    They are in memory once: `getvalue` of BytesIO copies nothing.

    Raises:
        Unavailable: it takes more than ANSWER_SECONDS, or the wait for others too long.
        urllib3.exceptions.HTTPError: the connection broke off.
    """
    content = BytesIO()
    end = time.monotonic() + ANSWER_SECONDS

    def read(most: int) -> None:
        for part in parts_of(response, most):
            content.write(part)
            if time.monotonic() > end:
                raise errors.Unavailable(f"{request}: the answer takes more than {ANSWER_SECONDS:.0f} s")

    read(min(LARGE_ANSWER + 1, most_bytes))
    if content.tell() > LARGE_ANSWER:
        began = time.monotonic()
        wait_before_large_answer()
        end += time.monotonic() - began
        read(most_bytes - content.tell())
    return content.getvalue()


def _is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
