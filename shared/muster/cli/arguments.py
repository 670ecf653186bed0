"""Read arguments that several commands have; each error is one line and exit status 2."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from muster.cli.output import CommandError
from muster.replay.files import BadFileError

STDIN = "-"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PARTS = re.compile(r"(\d+(?:\.\d+)?)(ms|[smh])")


class BadInput(CommandError):
    """An argument or file is invalid: `muster: MESSAGE` on standard error and exit status 2."""

    exit_code = 2


class Duration(click.ParamType[float]):
    """A time above zero in seconds, written as `2m`, `1h30m`, `500ms` or `90`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds of a text."""
        text = f"{value}s" if re.fullmatch(r"\d+(\.\d+)?", str(value)) else str(value)
        parts = _PARTS.findall(text)
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        if "".join(map("".join, parts)) != text or not seconds:
            self.fail(f"{value!r} is not a time such as 30s, 2m or 1h30m", param, ctx)
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


def path_of(target: str) -> Path:
    """Return the path of a file that was typed; that of standard input for `-`."""
    return Path("/dev/stdin" if target == STDIN else target)


def interrupt_by_signals() -> None:
    """Have SIGTERM end a command as Ctrl-C does, also one that a shell started in the background."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
