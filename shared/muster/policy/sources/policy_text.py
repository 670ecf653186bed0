"""Reads the YAML or JSON text of a policy, which any tenant may have written."""

from __future__ import annotations

import json
from typing import Any

import yaml

from muster.objects.yaml_files import SafeLoader
from muster.policy.limits import MESSAGE_LENGTH, POLICY_BYTES, POLICY_DEPTH


class BadTextError(Exception):
    """The text is no YAML, too long, nested too deeply, or has anchors or tags."""


def load(text: str, most_bytes: int = POLICY_BYTES) -> Any:
    """Return the data of a text; None if it is empty."""
    try:
        if len(text.encode()) > most_bytes:
            raise BadTextError(f"has more than {most_bytes} bytes")
        _check_events(text)
        data = yaml.load(text, SafeLoader)  # noqa: S506 - a subclass of yaml.SafeLoader
        json.dumps(data)  # commands are printed with it
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise BadTextError(f"{shortened(error.problem or 'invalid')}{line}") from error
    except (yaml.YAMLError, ArithmeticError, TypeError, ValueError) as error:
        raise BadTextError(shortened(" ".join(str(error).split()))) from error
    return data


def shortened(text: str, length: int = MESSAGE_LENGTH) -> str:
    """Return the beginning of a tenant's text for a message, with control characters escaped."""
    letters = (char if char.isprintable() else ascii(char)[1:-1] for char in text[:length])
    return "".join(letters) + ("…" if len(text) > length else "")


def _check_events(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, SafeLoader):
        if getattr(event, "anchor", None) is not None:  # an alias has one, too
            raise BadTextError("anchors and aliases are not allowed")
        if getattr(event, "tag", None) is not None:
            raise BadTextError("tags are not allowed")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > POLICY_DEPTH:
            raise BadTextError(f"is nested more than {POLICY_DEPTH} levels deep")
