"""Bound the process of a command: its memory, its silence on a terminal, and what its threads print."""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from muster.cli import report_bug
from muster.cli.output import echo_line, signs_of_life

MEMORY = "MUSTER_COMMAND_BYTES"
"""The environment variable with the most bytes of memory that a command may take; 0 is no limit."""

_MOST_BYTES = 2**30
"""The default: what a CI job or a laptop has left for a command."""

_UNBOUNDED = {"apiserver", "record", "run"}
"""The commands without these limits: they last until Ctrl-C, show what they do, and have hundreds of threads,
of which each reserves 8 MiB for its stack."""


def run(command: Callable[[], None], arguments: Sequence[str]) -> None:
    """Run a command that takes no more memory than it may, and is not silent for a minute on a terminal.

    Args:
        command: what runs it.
        arguments: its name and arguments, as they were typed.
    """
    if sys.stderr is None:  # `muster lint a.yaml 2>&-`
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    threading.excepthook = _report_in_thread
    sys.unraisablehook = _report_ignored
    try:
        if arguments and arguments[0] in _UNBOUNDED:
            command()
            return
        _limit_memory()
        with signs_of_life():
            command()
    except MemoryError:
        _set_limit(None)  # to print
        echo_line(f"muster: needs more memory than it may take; {MEMORY} sets how much that is", err=True)
        sys.exit(1)


def _limit_memory() -> None:
    """Have allocations beyond the limit fail with MemoryError, or exit with 2 if it is no number."""
    text = os.environ.get(MEMORY, str(_MOST_BYTES))
    if not (text.isascii() and text.isdigit() and len(text) < len(str(sys.maxsize))):
        echo_line(f"muster: {MEMORY}: {text[:40]!r} is no number of bytes", err=True)
        sys.exit(2)
    _set_limit(int(text) or None)


def _set_limit(most: int | None) -> None:
    """Set the limit of the process's private memory, as far as the system allows; None lifts it."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if most is None else most
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _report_in_thread(thrown: threading.ExceptHookArgs) -> None:
    _report(thrown.exc_value)


def _report_ignored(thrown: sys.UnraisableHookArgs) -> None:
    _report(thrown.exc_value)


def _report(error: BaseException | None) -> None:
    """Print in one line an exception that ended a thread, or that Python cannot raise; none of an end."""
    if isinstance(error, Exception):
        report_bug(error)
