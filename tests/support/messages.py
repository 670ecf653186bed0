"""Facts in messages: names, paths and numbers, whatever the words around them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from muster.policy.model import NoOp, Plan

DecisionT = TypeVar("DecisionT", NoOp, Plan, Plan | NoOp)


def mentions(message: str, *facts: object) -> bool:
    """Whether each name, path or number stands in the message, and not as a part of a longer one."""
    return all(
        re.search(rf"(?<![\w.\]-]){re.escape(str(fact))}(?![\w\[-]|\.\w)", message) is not None
        for fact in facts
    )


def without_message(decision: DecisionT) -> DecisionT:
    """The decision without its message, to be compared with one that has none."""
    return replace(decision, message="")
