"""Bound the process of a command: its memory, its silence on a terminal, and what its threads print."""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

from muster.cli import report_unforeseen
from muster.cli.output import echo_line, signs_of_life

MEMORY = "MUSTER_COMMAND_BYTES"
"""The environment variable with the most bytes of memory that a command may take; 0 is no limit."""

_MOST_BYTES = 2**30
"""The default: what a CI job or a laptop has left for a command."""

_LEAST_BYTES = 2**26
"""The least that it may be set to: Python itself ends in odd ways where it cannot import a module."""

_READ_FILES = {"explain", "lint", "new-step", "plan", "replay"}
"""The commands whose process is limited. Of the others the memory is looked at: each of hundreds of threads
reserves 8 MiB for its stack, and a program that a kubeconfig names would inherit the limit."""

_UNTIL_CTRL_C = {"record", "run"}
"""The commands that wait for what happens, and show it."""

_STATM = Path("/proc/self/statm")

_LOOK_SECONDS = 0.2
"""How often the memory of these commands is looked at."""

_STOP_SECONDS, _SIGNALS = 10.0, 3
"""How long one of them may take to stop after a signal, and how many it gets; the next ends what it reads."""

_TOO_LITTLE = f"muster: needs more memory than it may take; {MEMORY} sets how much that is"


def run(command: Callable[[], None], arguments: Sequence[str]) -> None:
    """Run a command that takes no more memory than it may, and is not silent for a minute on a terminal.

    Of `apiserver` neither is limited: it serves what it was given until Ctrl-C.

    Args:
        command: what runs it.
        arguments: its name and arguments, as they were typed.
    """
    if sys.stderr is None:  # `muster lint a.yaml 2>&-`
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    threading.excepthook = _report_in_thread
    sys.unraisablehook = _report_ignored
    most = _most_memory()
    name = arguments[0] if arguments else ""
    try:
        if name == "apiserver":
            command()
            return
        with ExitStack() as bounds:
            if most is not None and name in _READ_FILES:
                _limit_memory(most)
            elif most is not None:
                bounds.enter_context(_memory_watched(most))
            if name not in _UNTIL_CTRL_C:
                bounds.enter_context(signs_of_life())
            command()
    except MemoryError:
        _lift_limit()  # to print
        echo_line(_TOO_LITTLE, err=True)
        sys.exit(1)
    except RuntimeError as error:  # of a thread of these bounds
        sys.exit(report_unforeseen(error))


def _most_memory() -> int | None:
    """Return the most bytes that a command may take, None for no limit; exit with 2 for a wrong setting."""
    text = os.environ.get(MEMORY, str(_MOST_BYTES))
    is_number = text.isascii() and text.isdigit() and len(text) < len(str(sys.maxsize))
    most = int(text) if is_number else -1
    if most == 0 or most >= _LEAST_BYTES:
        return most or None
    echo_line(f"muster: {MEMORY}: {text[:40]!r} is neither 0 nor a number from {_LEAST_BYTES}", err=True)
    sys.exit(2)


@contextmanager
def _memory_watched(most: int) -> Iterator[None]:
    """Stop the `with` block as Ctrl-C does, and exit with 1, if the process takes more memory than this."""
    ended, exceeded = threading.Event(), threading.Event()

    def watch() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        while _memory() <= most:
            if ended.wait(_LOOK_SECONDS):
                return
        exceeded.set()
        for _ in range(_SIGNALS):
            os.kill(os.getpid(), signal.SIGINT)
            if ended.wait(_STOP_SECONDS):
                return
        os.write(2, f"{_TOO_LITTLE}\n".encode())
        os._exit(1)

    def stop_if_exceeded(_number: int, _frame: FrameType | None) -> None:
        if exceeded.is_set():
            raise KeyboardInterrupt

    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # `muster status &` in a script
        signal.signal(signal.SIGINT, stop_if_exceeded)
    thread = threading.Thread(target=watch, name="memory", daemon=True)
    try:
        thread.start()
        yield
    finally:
        ended.set()
        if exceeded.is_set():
            echo_line(_TOO_LITTLE, err=True)
            sys.exit(1)


def _memory() -> int:
    """Return the bytes of memory that the process takes; 0 where the system has no /proc."""
    try:
        pages = _STATM.read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()


def _limit_memory(most: int) -> None:
    """Have allocations fail with MemoryError beyond so many bytes, or fewer if the system allows no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard)
    )


def _lift_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _report_in_thread(thrown: threading.ExceptHookArgs) -> None:
    _report(thrown.exc_value)


def _report_ignored(thrown: sys.UnraisableHookArgs) -> None:
    if not isinstance(thrown.exc_value, MemoryError):  # the command meets it too, and there is none to print
        _report(thrown.exc_value)


def _report(error: BaseException | None) -> None:
    """Print in one line an exception that ended a thread, or that Python cannot raise; not that of Ctrl-C."""
    if isinstance(error, MemoryError):
        echo_line(_TOO_LITTLE, err=True)
    elif isinstance(error, Exception):
        report_unforeseen(error)
