"""Delivery targets of a broker: a URL, or a function in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import urllib3


@dataclass(frozen=True)
class Answer:
    """The HTTP response of a subscriber."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class NoAnswerError(Exception):
    """The subscriber could not be reached, or exceeded the timeout (`timed_out`)."""

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


Target = Callable[[Mapping[str, str], bytes, float | None], Answer]
"""A subscriber or dead letter sink: takes headers, body and a timeout in seconds; raises NoAnswerError."""


class HttpTarget:
    """A subscriber at a URL, with keep-alive connections."""

    def __init__(self, url: str, *, connections: int = 8) -> None:
        self.url = url
        self._pool = urllib3.PoolManager(maxsize=connections, retries=False)

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        """POST an event; redirects are not followed."""
        try:
            response = self._pool.request(
                "POST",
                self.url,
                body=body,
                headers=dict(headers),
                timeout=urllib3.Timeout(total=timeout),
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            # NewConnectionError (connection refused) inherits from ConnectTimeoutError, but is no timeout.
            timed_out = isinstance(error, urllib3.exceptions.TimeoutError)
            refused = isinstance(error, urllib3.exceptions.NewConnectionError)
            raise NoAnswerError(str(error), timed_out=timed_out and not refused) from error
        except ValueError as error:  # an attribute that no header can have
            raise NoAnswerError(f"the event cannot be sent: {error}") from error
        return Answer(response.status, response.headers, response.data)

    def close(self) -> None:
        """Close idle connections."""
        self._pool.clear()

    def __repr__(self) -> str:
        return self.url
