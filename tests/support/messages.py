"""Assertions about the names, paths and numbers in a message, independent of its wording."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TypeVar

from muster.policy.model import NoOp, Plan

DecisionT = TypeVar("DecisionT", NoOp, Plan, Plan | NoOp)


def mentions(message: str, *facts: object) -> bool:
    """Return whether the message contains each name, path or number as a whole word."""
    return all(
        re.search(rf"(?<![\w.\]-]){re.escape(str(fact))}(?![\w\[-]|\.\w)", message) is not None
        for fact in facts
    )


def without_message(decision: DecisionT) -> DecisionT:
    """Return the decision with an empty message, for comparison with `NoOp(reason)`."""
    return replace(decision, message="")
