"""Read arguments that several commands have; each error is one line and exit status 2."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster.cli.output import CommandError
from muster.replay.files import BadFileError

STDIN = "-"


class BadInput(CommandError):
    """An argument or file is invalid: `muster: MESSAGE` on standard error and exit status 2."""

    exit_code = 2


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
