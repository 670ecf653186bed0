"""The two ways to follow a run: a picture that changes on a terminal, lines anywhere else."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from muster.local.display import drawing
from muster.local.stories import Scene
from muster.replay.activity import Activity

RECENT = 12
"""Lines of what the functions did that the picture has room for."""


class Follower(Protocol):
    """Shows what happens while it happens."""

    def __enter__(self) -> Self:
        """Begin."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
        ...

    def did(self, activity: Activity) -> None:
        """A function did something."""
        ...

    def began(self, scene: Scene) -> None:
        """A story begins."""
        ...

    def ended(self, scene: Scene) -> None:
        """A story ended."""
        ...


class Lines:
    """A line for everything that was done, as it is done."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._since = time.time()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def did(self, activity: Activity) -> None:
        """One line, if anything was written or went wrong."""
        if activity.acted:
            self._say(drawing.line(activity, self._since))

    def began(self, scene: Scene) -> None:
        """The story's title."""
        self._say(f"{scene.begun - self._since:7.2f}s   {scene.story.name}: {scene.story.title}")

    def ended(self, scene: Scene) -> None:
        """Whether it held."""
        verdict = "held" if scene.held else "FAILED"
        self._say(f"{scene.ended - self._since:7.2f}s   {scene.story.name} {verdict}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)


class Picture:
    """The stories, the tree of the one that is told, and what the functions did last."""

    def __init__(self, console: Console) -> None:
        self._lock = threading.Lock()
        self._since = time.time()
        self._recent: list[Activity] = []
        self._scenes: list[Scene] = []
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=10, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def did(self, activity: Activity) -> None:
        """Show it among the last ones, if anything was written or went wrong."""
        if activity.acted:
            with self._lock:
                self._recent = [*self._recent, activity][-RECENT:]

    def began(self, scene: Scene) -> None:
        """Show its tree."""
        with self._lock:
            self._scenes.append(scene)

    def ended(self, scene: Scene) -> None:
        """Its headline says it by itself."""

    def _render(self) -> RenderableType:
        with self._lock:
            recent, scenes = list(self._recent), list(self._scenes)
        if not scenes:
            return Spinner("dots", Text(f"the local stack comes up, {time.time() - self._since:.0f} s"))
        lines = (Text(drawing.line(one, self._since), no_wrap=True, overflow="ellipsis") for one in recent)
        return Group(*_stories(scenes), Text(""), *lines)


def _stories(scenes: Sequence[Scene]) -> list[RenderableType]:
    shown: list[RenderableType] = [drawing.headline(scene) for scene in scenes]
    trees = drawing.forest(scenes[-1].objects)
    return [*shown, *(drawing.drawn(branch) for branch in trees)]


def follower(console: Console) -> Follower:
    """The picture on a terminal, else lines."""
    return Picture(console) if console.is_terminal else Lines(console)
