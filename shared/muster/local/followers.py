"""Show stories and activities while they happen: live on a terminal, as lines, or not at all."""

from __future__ import annotations

import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from muster.local.display import WAITING, activity_lines, headline, owner_trees, render_tree
from muster.local.stories import StoryRun
from muster.replay.activity import Activity
from muster.replay.snapshots import Objects

RECENT = 6
"""How many activities the live view shows."""

TREES = 5
"""How many jobs the live view shows, the newest ones."""


class Follower(Protocol):
    """Shows activities and stories while they happen."""

    def __enter__(self) -> Self:
        """Start to show."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop showing."""
        ...

    def add_activity(self, activity: Activity) -> None:
        """Show an activity."""
        ...

    def story_began(self, run: StoryRun) -> None:
        """Show that a story began."""
        ...

    def story_ended(self) -> None:
        """Stop showing the story, whose report is printed next."""
        ...

    def follow(self, objects: Callable[[], Objects]) -> None:
        """Show these objects from now on, instead of those of a story."""
        ...

    def tick(self) -> None:
        """Show what changed; called twice a second while objects are followed."""
        ...


class Lines:
    """Prints activities as lines, and followed objects when they are placed or refused.

    Args:
        console: where to print.
        quiet: whether activities are shown only while objects are followed.
    """

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._since = time.time()
        self._objects: Callable[[], Objects] | None = None
        self._shown: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def add_activity(self, activity: Activity) -> None:
        """Print an activity if the function wrote or failed."""
        if activity.acted and not self._quiet:
            for line in activity_lines(activity, self._since, self._console.width):
                self._console.print(line, markup=False, soft_wrap=True)

    def story_began(self, run: StoryRun) -> None:
        """Print name and title of the story."""
        if not self._quiet:
            self._console.print(headline(run))

    def story_ended(self) -> None:
        """Do nothing: lines stay."""

    def follow(self, objects: Callable[[], Objects]) -> None:
        """Print these objects when they are placed or refused, and all activities."""
        self._objects, self._quiet = objects, False

    def tick(self) -> None:
        """Print the trees of jobs that were placed or refused since the last time."""
        for tree in owner_trees(self._objects()) if self._objects else ():
            if tree.mark != WAITING and repr(tree) not in self._shown:
                self._shown.add(repr(tree))
                self._console.print(render_tree(tree))


class LiveView:
    """Shows the trees of the present story, or of followed jobs, and the last activities on a terminal.

    Args:
        console: of the terminal.
    """

    def __init__(self, console: Console) -> None:
        self._lock = threading.Lock()
        self._console = console
        self._since = time.time()
        self._recent: list[Activity] = []
        self._run: StoryRun | None = None
        self._objects: Callable[[], Objects] | None = None
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=10, transient=True)
        self._exits = ExitStack()

    def __enter__(self) -> Self:
        self._exits.enter_context(_without_echo_of_signals())
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        self._exits.close()

    def add_activity(self, activity: Activity) -> None:
        """Show the activity among the last ones if the function wrote or failed."""
        if activity.acted:
            with self._lock:
                self._recent = [*self._recent, activity][-RECENT:]

    def story_began(self, run: StoryRun) -> None:
        """Show the headline and the trees of the story."""
        with self._lock:
            self._run, self._recent = run, []

    def story_ended(self) -> None:
        """Draw the view without the story; else what is printed next would have the last view below it."""
        self._live.refresh()

    def follow(self, objects: Callable[[], Objects]) -> None:
        """Show the trees of these objects."""
        with self._lock:
            self._run, self._recent, self._objects = None, [], objects

    def tick(self) -> None:
        """Do nothing: the view is drawn ten times a second."""

    def _render(self) -> RenderableType:
        with self._lock:
            recent, run, objects = list(self._recent), self._run, self._objects
        if run is not None and run.ended:
            return Text("")
        if run is None and objects is None:
            return Spinner("dots", Text(f"the local stack comes up, {time.time() - self._since:.0f} s"))
        heads = [headline(run)] if run else []
        trees = owner_trees(run.objects if run else objects() if objects else [])
        shown = [render_tree(branch) for branch in trees[-TREES:]]
        if run is None and not trees:
            shown = [Spinner("dots", Text("no jobs of yours yet"))]  # type: ignore[list-item]
        return Group(*heads, *shown, Text(""), *self._activities(recent))

    def _activities(self, recent: list[Activity]) -> Iterator[Text]:
        """Yield the last activities, each with at most one line for its result."""
        for activity in recent:
            for line in activity_lines(activity, self._since, self._console.width, short=True):
                yield Text(line, no_wrap=True, overflow="ellipsis")


@contextmanager
def _without_echo_of_signals() -> Iterator[None]:
    """Let the terminal print no ^C, which would move the lines of a live view."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    attributes = [*before]
    attributes[3] &= ~termios.ECHOCTL
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, attributes)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal was closed
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def follower(console: Console, *, every_activity: bool) -> Follower:
    """Return a live view on a terminal; else lines, of activities only if they are asked for."""
    if console.is_terminal and not every_activity:
        return LiveView(console)
    return Lines(console, quiet=not every_activity)
