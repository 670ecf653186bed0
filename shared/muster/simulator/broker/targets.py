"""Delivery targets of a broker: a URL, or a function in this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urljoin

import urllib3

REDIRECTS = frozenset({301, 302, 303, 307, 308})
KEEPING_THE_METHOD = frozenset({307, 308})
MAX_REQUESTS = 10
"""Requests of a chain of redirects, the first one included (`defaultCheckRedirect` of Go's `net/http`)."""
MOST_ANSWER_BYTES = 8 * 1024 * 1024
"""The longest body of an answer: twice that of the largest event that a function takes by default."""


@dataclass(frozen=True)
class Answer:
    """The HTTP response of a subscriber."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class NoAnswerError(Exception):
    """The subscriber could not be reached, or did not respond in time, or with a body that is too long.

    Attributes:
        timed_out: the subscriber was reached, but exceeded the delivery's timeout.
    """

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class Target(Protocol):
    """A subscriber or dead letter sink."""

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None, /) -> Answer:
        """Deliver an event; `timeout` in seconds, None for no timeout.

        Raises:
            NoAnswerError: there was no response.
        """
        ...


class HttpTarget:
    """A subscriber at a URL, with keep-alive connections.

    Redirects are followed as by Go's `net/http`: after 301, 302 and 303 as GET without the body.

    Args:
        url: where events are sent.
        connections: the most connections that are kept.
        redirected: whether redirects are followed.
    """

    def __init__(self, url: str, *, connections: int = 8, redirected: bool = True) -> None:
        self.url = url
        self._redirects = REDIRECTS if redirected else frozenset()
        self._pool = urllib3.PoolManager(maxsize=connections, retries=False)

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        """POST an event; the time-out counts for each request of a chain of redirects."""
        method, url = "POST", self.url
        for _ in range(MAX_REQUESTS):
            answer = self._request(method, url, headers, body, timeout)
            location = answer.headers.get("Location")
            if answer.status not in self._redirects or not location:
                return answer
            url = urljoin(url, location)
            if answer.status not in KEEPING_THE_METHOD:
                method, body = "GET", b""
                headers = {name: value for name, value in headers.items() if name.lower() != "content-type"}
        raise NoAnswerError(f"{self.url}: stopped after {MAX_REQUESTS} redirects")

    def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, timeout: float | None
    ) -> Answer:
        try:
            response = self._pool.request(
                method,
                url,
                body=body,
                headers=dict(headers),
                timeout=urllib3.Timeout(total=timeout),
                redirect=False,
                preload_content=False,
            )
            content = response.read(MOST_ANSWER_BYTES + 1)  # to the end: frees the connection
        except urllib3.exceptions.HTTPError as error:
            # NewConnectionError (connection refused) inherits from ConnectTimeoutError, but is no timeout.
            timed_out = isinstance(error, urllib3.exceptions.TimeoutError)
            refused = isinstance(error, urllib3.exceptions.NewConnectionError)
            raise NoAnswerError(str(error), timed_out=timed_out and not refused) from error
        except ValueError as error:
            raise NoAnswerError(f"the event cannot be sent: {error}") from error
        if len(content) > MOST_ANSWER_BYTES:
            response.close()
            raise NoAnswerError(f"{url}: the answer has more than {MOST_ANSWER_BYTES} bytes")
        return Answer(response.status, response.headers, content)

    def close(self) -> None:
        """Close idle connections."""
        self._pool.clear()

    def __repr__(self) -> str:
        return self.url
