"""PriorityClasses of a story: they belong to the whole cluster, so the story deletes them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from tests.contract.bodies import CLASSES, priority_class
from tests.e2e.support import admission
from tests.e2e.support.story import RealStory

Make = Callable[..., str]
"""Creates a PriorityClass of a name, a value and further fields; returns its name in the cluster."""


@contextlib.contextmanager
def priority_classes(story: RealStory) -> Iterator[Make]:
    """Create PriorityClasses in the block, and delete them at its end."""
    made: list[str] = []

    def make(name: str, value: int, **fields: Any) -> str:
        made.append(f"{story.namespace}-{name}")
        story.api.must("POST", CLASSES, priority_class(made[-1], value, **fields))
        assert admission.class_is_known(story.api, story.namespace, made[-1])
        return made[-1]

    yield make
    for name in made:
        story.api.must("DELETE", f"{CLASSES}/{name}")
