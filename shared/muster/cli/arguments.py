"""Shared by the commands: errors of arguments, the limit to loopback addresses, and signals."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from muster.cli.output import CommandError
from muster.replay.files import BadFileError
from muster.simulator.overlays import Manifest, UnsupportedManifestError, load, of_kind

_BEYOND_OPTION = "--beyond-this-machine"
_STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM}


class BadInput(CommandError):
    """An argument or file is invalid: `muster: MESSAGE` on standard error and exit status 2."""

    exit_code = 2


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|[smh])")


class Duration(click.ParamType[float]):
    """A time above zero in seconds, written as `2m`, `1h30m`, `500ms` or `90`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds of a text."""
        text = str(value)
        parts = _PARTS.findall(text)
        if parts and "".join(map("".join, parts)) == text:
            seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        else:
            seconds = float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else 0.0
        if not 0 < seconds < float("inf"):
            self.fail(f"{text!r} is not a time such as 30s, 2m or 1h30m", param, ctx)
        return seconds


@contextmanager
def errors_as_bad_input() -> Iterator[None]:
    """Turn BadFileError and LookupError into BadInput."""
    try:
        yield
    except BadFileError as error:
        raise BadInput(str(error)) from None
    except LookupError as error:
        raise BadInput(str(error.args[0])) from None


def beyond_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the flag --beyond-this-machine with a help text."""
    return click.option(_BEYOND_OPTION, "beyond", is_flag=True, help=text)


def keep_to_this_machine(option: str, host: str, reason: str, *, beyond: bool) -> None:
    """Refuse a host that is not this machine, unless --beyond-this-machine was given.

    Raises:
        BadInput: the host is refused, for this reason.
    """
    if not beyond and not _is_loopback(host):
        raise BadInput(
            f"{option}: {host or 'every address'} is not only this machine: {reason}; "
            f"{_BEYOND_OPTION} allows it"
        )


def parse_endpoint(option: str, text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, `:PORT` (127.0.0.1) or `[::1]:PORT`.

    Raises:
        BadInput: the text has another form.
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


@contextmanager
def stop_signals(*others: threading.Event) -> Iterator[threading.Event]:
    """Yield an Event that each Ctrl-C or SIGTERM sets; the signals interrupt nothing within the block.

    Enter it before any thread is started, since a thread inherits the signal mask of its creator.

    Args:
        others: Events that are set as well.
    """
    stop, leaving = threading.Event(), threading.Event()

    def wait() -> None:
        while not leaving.is_set():
            signal.sigwait(_STOP_SIGNALS)
            for event in (stop, *others):
                event.set()

    # A shell starts background jobs with SIGINT ignored, and sigwait never returns an ignored signal.
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    waiter = threading.Thread(target=wait, name="signals", daemon=True)
    waiter.start()
    try:
        yield stop
    finally:
        leaving.set()
        signal.pthread_kill(waiter.ident or 0, signal.SIGTERM)
        waiter.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)


def load_overlay(path: Path) -> list[Manifest]:
    """Return the objects of a file of manifests, or of a kustomization folder.

    Raises:
        BadInput: there is no such path, or it is neither.
    """
    try:
        objects = load(path)
    except OSError as error:
        raise BadInput(f"{error.filename or path}: {error.strerror}") from None
    except UnsupportedManifestError as error:
        raise BadInput(str(error)) from None
    if not objects:
        raise BadInput(f"{path}: has no objects")
    return objects


def load_installed(path: Path) -> list[Manifest]:
    """Return the objects of a kustomization folder, of a file of manifests, or of standard input (`-`).

    Raises:
        BadInput: as `load_overlay`; or there is no Broker.
    """
    file = Path("/dev/stdin") if str(path) == "-" else path
    objects = load_overlay(file)
    if not of_kind(objects, "Broker"):
        raise BadInput(f"{file}: has no Broker, so it is not what a release of Muster installs")
    return objects
