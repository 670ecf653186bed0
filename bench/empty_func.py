"""An empty function behind func's own server, which answers every request with 204."""

from __future__ import annotations

from typing import Any

from func_python.http import serve


async def handle(_scope: Any, _receive: Any, send: Any) -> None:
    """Answer a request."""
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    serve(handle)
