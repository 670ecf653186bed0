"""Commands keep to this machine unless they are told otherwise: an event makes a function write."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import click

from muster.cli.bad_input import BadInput

_OPTION = "--beyond-this-machine"


def beyond_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The flag that allows another machine; `text` says for what."""
    return click.option(_OPTION, "beyond", is_flag=True, help=text)


def keep_to_this_machine(option: str, host: str, why: str, *, beyond: bool) -> None:
    """Refuse a host that is not this machine.

    Raises:
        BadInput: it is not, and nobody said that it may be.
    """
    if not beyond and not _is_loopback(host):
        raise BadInput(
            f"{option}: {host or 'every address'} is not this machine alone: {why}; {_OPTION} allows it"
        )


def endpoint(option: str, text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; the host may be left out, and `[::1]:80` has brackets.

    Raises:
        BadInput: it is neither.
    """
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname or "127.0.0.1", parts.port
    except ValueError:
        host, port = "", None
    if port is None or parts.path:
        raise BadInput(f"{option}: {text!r} is not HOST:PORT")
    return host, port


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
