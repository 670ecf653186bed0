"""The stories of `muster run`: objects as a user writes them, and what has to come of them."""

from muster.local.stories.catalogue import STORIES, story_named
from muster.local.stories.rules import Check
from muster.local.stories.scene import Scene, Story

__all__ = ["STORIES", "Check", "Scene", "Story", "story_named"]
