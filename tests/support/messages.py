"""Whether a message has names, paths and numbers, independent of its wording."""

from __future__ import annotations

import re


def mentions(message: str, *facts: object) -> bool:
    """Return whether the message contains each name, path or number as a whole word."""
    return all(
        re.search(rf"(?<![\w.\]-]){re.escape(str(fact))}(?![\w\[-]|\.\w)", message) is not None
        for fact in facts
    )
