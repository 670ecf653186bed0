"""A client that calls the embedded API server without HTTP; replays send it thousands of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

from muster.cluster.http.client import Client
from muster.simulator.apiserver import ApiServer


class Direct(Client):
    """A client of an embedded API server in the same process; only watches use HTTP."""

    _server: ApiServer

    @classmethod
    def to(cls, server: ApiServer, *, user_agent: str = "muster") -> Self:
        """Return a client of a started server."""
        client = cls.for_server(server.url, user_agent=user_agent)
        client._server = server  # noqa: SLF001 - of the same class
        return client

    def receive(
        self, method: str, path: str, query: Mapping[str, str], body: Any, content_type: str
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Send a request; bodies are serialized to JSON, so that client and server share no objects."""
        headers = {"user-agent": self.user_agent, "content-type": content_type}
        text = "" if body is None else json.dumps(body, separators=(",", ":"), ensure_ascii=False)
        content = text.encode(errors="replace")
        parameters = {name: value for name, value in query.items() if value}
        return self._server.answer(method, path, parameters, headers, content)
