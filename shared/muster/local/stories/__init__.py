"""The stories of `muster run`: objects as a user writes them, and checks of what happens to them."""

from muster.local.stories.checks import Check
from muster.local.stories.story import STORIES, LocalStory, StoryRun, story_named

__all__ = ["STORIES", "Check", "LocalStory", "StoryRun", "story_named"]
