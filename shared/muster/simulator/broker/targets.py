"""Where a broker delivers to: a URL, or a function of this very process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import urllib3


@dataclass(frozen=True)
class Answer:
    """What a subscriber said."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class NoAnswerError(Exception):
    """The subscriber could not be reached, or did not answer in time.

    Attributes:
        timed_out: it was reached but took longer than the delivery's time-out.
    """

    def __init__(self, message: str, *, timed_out: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out


class Target(Protocol):
    """One subscriber or dead letter sink. Raises NoAnswerError when there is no answer."""

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None, /) -> Answer:
        """Deliver one event; `timeout` in seconds, None means for ever."""
        ...


class HttpTarget:
    """A subscriber behind a URL, over kept-alive connections; redirects are answers like any other."""

    def __init__(self, url: str, *, connections: int = 8) -> None:
        self.url = url
        self._pool = urllib3.PoolManager(maxsize=connections, retries=False)

    def __call__(self, headers: Mapping[str, str], body: bytes, timeout: float | None) -> Answer:
        """POST one event."""
        try:
            answer = self._pool.request(
                "POST",
                self.url,
                body=body,
                headers=dict(headers),
                timeout=urllib3.Timeout(total=timeout),
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            # A refused connection is a ConnectTimeoutError by inheritance, but nobody waited for it.
            waited = isinstance(error, urllib3.exceptions.TimeoutError)
            refused = isinstance(error, urllib3.exceptions.NewConnectionError)
            raise NoAnswerError(str(error), timed_out=waited and not refused) from error
        return Answer(answer.status, answer.headers, answer.data)

    def close(self) -> None:
        """Close the idle connections."""
        self._pool.clear()

    def __repr__(self) -> str:
        return self.url
