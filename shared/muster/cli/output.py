"""Print what people read: cluster objects and events may contain text that a terminal would obey."""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from pathlib import Path
from textwrap import indent
from typing import Any

import click
import yaml

from muster.objects.text import printable

_PROGRESS_FROM = 50
"""From this number of deliveries or jobs on, a command takes seconds and shows its progress."""

_PATIENCE_SECONDS = 1.0
"""After this time a command shows what it does; so often it updates the line of a long step."""

_SHORTEST_SECONDS = 0.1
"""The time for which a step stays in the line before another one takes its place."""

_LONG_STEP_SECONDS = 5
"""From this time on it shows how long a step takes."""

_TICK_SECONDS = 10.0
"""How often a command looks whether it was silent."""

_SILENT_TICKS = 4
"""A command says that it works after so many without output, 40 to 50 s; `status --watch` pauses for 30 s."""

_shown = threading.Event()
"""Set by output on a terminal, and by all on standard error."""


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines on standard output, or standard error with `err`; other control characters are escaped."""
    _note_printed(err=err)
    lines = "\n".join(map(printable, text.split("\n")))
    click.echo(lines, err=err, nl=nl)  # noqa: TID251 - the one place that prints


def echo_line(text: str, *, err: bool = False) -> None:
    """Print one line; line breaks in it, such as those of a name, are escaped as well."""
    _note_printed(err=err)
    click.echo(printable(text), err=err)  # noqa: TID251 - as in `echo`


def _note_printed(*, err: bool) -> None:
    if err or sys.stdout.isatty():
        _shown.set()


def output_option(*formats: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option -o with these formats; the first is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="Format."
    )


def echo_data(data: Any, output: str) -> None:
    """Print plain data as `json` or `yaml`; control characters are escaped by the format itself."""
    if output == "json":
        echo(json.dumps(data, indent=2))
    else:
        echo(yaml.dump(data, Dumper=_PlainDumper, sort_keys=False, width=110), nl=False)


def echo_items(items: Iterable[Any], output: str) -> None:
    """Print a list as `echo_data` does, but each item as it comes: thousands as a whole take minutes."""
    if not _echo_list(items, output):
        echo("[]")
    elif output == "json":
        echo("")


def echo_documents(documents: Iterable[Mapping[str, Any]], output: str) -> int:
    """Print each as it comes, as YAML documents or as one JSON list; return their number.

    If there is none, nothing is printed. The items of lists are printed one by one, as by `echo_sections`.
    """
    number = 0
    for number, document in enumerate(documents, start=1):
        if output == "json":
            echo(f"{',' if number > 1 else '['}\n  ", nl=False)
            _echo_sections(document, output, "  ")
        else:
            if number > 1:
                echo("---")
            _echo_sections(document, output)
    if number and output == "json":
        echo("\n]")
    return number


def echo_lines(lines: Iterable[str], length: int) -> None:
    """Print lines as they come, about `length` of them."""
    with progress(length, "printing", hidden=sys.stdout.isatty()) as advance:
        for line in lines:
            echo(line)
            advance()


def echo_sections(sections: Mapping[str, Any], output: str) -> None:
    """Print a mapping as `echo_data` does, but the items of its lists one by one."""
    _echo_sections(sections, output)
    if output == "json":
        echo("")


def _echo_sections(sections: Mapping[str, Any], output: str, margin: str = "") -> None:
    """Print a mapping; of JSON each line but the first after a margin, without the last line break."""
    if not sections:
        echo("{}", nl=output == "yaml")
        return
    for number, (key, value) in enumerate(sections.items()):
        has_items = isinstance(value, list) and bool(value)
        if output == "json":
            echo(f"{',' if number else '{'}\n{margin}  {json.dumps(key)}: ", nl=False)
        elif has_items:
            echo(f"{key}:")
        if has_items:
            _echo_list(value, output, f"{margin}  ")
        elif output == "json":
            echo(indent(json.dumps(value, indent=2), f"{margin}  ").lstrip(), nl=False)
        else:
            echo_data({key: value}, output)
    if output == "json":
        echo(f"\n{margin}}}", nl=False)


def _echo_list(items: Iterable[Any], output: str, margin: str = "") -> int:
    """Print a list item by item, and return their number; of an empty list nothing is printed.

    Args:
        items: the list.
        output: `json` or `yaml`.
        margin: what stands before each line of JSON but the first.
    """
    number = 0
    with _printing(items) as advance:
        for number, item in enumerate(items, start=1):
            if output == "json":
                text = indent(json.dumps([item], indent=2)[1:-2], margin)
                echo(f"{',' if number > 1 else '['}{text}", nl=False)
            else:
                echo_data([item], output)
            advance()
    if number and output == "json":
        echo(f"\n{margin}]", nl=False)
    return number


def _printing(items: Iterable[Any]) -> AbstractContextManager[Callable[[], None]]:
    length = len(items) if isinstance(items, Sized) else 0
    return progress(length, "printing", hidden=sys.stdout.isatty())


class _PlainDumper(yaml.SafeDumper):
    """Writes a reason or another StrEnum as its text, as JSON does."""


_PlainDumper.add_multi_representer(StrEnum, lambda dumper, text: dumper.represent_str(str(text)))


@contextmanager
def repeated(action: Callable[[], object], first: float, then: float) -> Iterator[None]:
    """Call an action again and again during the `with` block, in a thread, if standard error is a terminal.

    Args:
        action: called without arguments.
        first: the seconds until the first call.
        then: those between two calls.
    """
    ended = threading.Event()

    def repeat() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
        seconds = first
        while not ended.wait(seconds):
            action()
            seconds = then

    thread = threading.Thread(target=repeat, daemon=True)
    if sys.stderr.isatty():
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()


@contextmanager
def signs_of_life() -> Iterator[None]:
    """Print a line for each 40 s without output in the `with` block, if standard error is a terminal."""
    silent = 0

    def look() -> None:
        nonlocal silent
        silent = 0 if _shown.is_set() else silent + 1
        _shown.clear()
        if silent and silent % _SILENT_TICKS == 0:
            echo_line(f"muster: still working, {silent * _TICK_SECONDS:.0f} s without output", err=True)
            _shown.clear()  # that line does not count

    with repeated(look, _TICK_SECONDS, _TICK_SECONDS):
        yield


@contextmanager
def step_shown(text: str) -> Iterator[Callable[[str], None]]:
    """Yield what shows the present step of slow work in one line, if standard error is a terminal.

    The line appears after a second, also in the middle of a step, and is cleared at the end. It counts the
    seconds of a long step. The step "" clears it for output of the block.
    """
    line = _StepLine(text)
    try:
        with repeated(line.refresh, _PATIENCE_SECONDS, _PATIENCE_SECONDS):
            yield line.show
    finally:
        line.close()


@contextmanager
def reading_shown(path: Path) -> Iterator[None]:
    """Show in the `with` block that a file is read, as `step_shown` does."""
    with step_shown("reading") as show:
        show(str(path))
        yield


class _StepLine:
    """The line with the present step; another thread makes it appear."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._step = ""
        self._since = time.monotonic()
        self._next = 0.0
        """When the next step may be printed."""
        self._patient = True
        self._printed = ""
        self._lock = threading.Lock()

    def show(self, step: str) -> None:
        """Note the present step, and print it in place of the one before if the line has appeared.

        Of steps that take no time only some are printed: a stream may have 200,000 events.
        """
        with self._lock:
            self._step, self._since = step, time.monotonic()
            if not step or self._since >= self._next:
                self._print()

    def refresh(self) -> None:
        """Print the line if it changed; from the first call on each step is printed."""
        with self._lock:
            self._patient = False
            if self._line() != self._printed:
                self._print()

    def close(self) -> None:
        """Clear the line for good."""
        with self._lock:
            self._step = ""
            self._print()
            self._patient = True

    def _line(self) -> str:
        if not self._step:
            return ""
        seconds = int(time.monotonic() - self._since)
        return f"{self._text} {self._step} ..." + (f" {seconds} s" if seconds >= _LONG_STEP_SECONDS else "")

    def _print(self) -> None:
        if self._patient:
            return
        if self._printed:
            clear_line()
        self._printed = self._line()
        if self._printed:
            echo(self._printed, nl=False, err=True)
            self._next = time.monotonic() + _SHORTEST_SECONDS


def clear_line() -> None:
    """Clear the present line of standard error, which is a terminal."""
    click.echo("\r\x1b[K", nl=False, err=True)  # noqa: TID251 - no text that comes from elsewhere


@contextmanager
def progress(length: int, label: str, *, hidden: bool = False) -> Iterator[Callable[[], None]]:
    """Show a progress bar for long work if standard error is a terminal; yield what advances it by one."""
    hidden = hidden or length < _PROGRESS_FROM or not sys.stderr.isatty()
    with click.progressbar(length=length, label=label, file=sys.stderr, hidden=hidden) as bar:

        def advance() -> None:
            _shown.set()
            bar.update(1)

        yield advance


class CommandError(click.ClickException):  # noqa: TID251 - `main` escapes its message
    """A command failed: `muster: MESSAGE` on standard error and exit status 1."""
