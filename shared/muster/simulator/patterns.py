r"""Regular expressions as Go reads them (RE2): their syntax, and time that is linear in the text.

Python's `re` refuses `\pL` and `\z`, takes `$` before a last newline, and can take exponential time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from cel_expr_python import cel


class PatternError(ValueError):
    """A text that is no regular expression; the message says why."""


def has_match(pattern: str, text: str) -> bool:
    """Whether a part of the text matches the pattern.

    Raises:
        PatternError: the pattern is no regular expression.
    """
    environment, matches = _matches()
    found = matches.eval(environment.Activation({"pattern": pattern, "text": text}))
    if found.type() == cel.Type.ERROR:
        raise PatternError(str(found.value()).rpartition("invalid regular expression: ")[2])
    return bool(found.value())


@cache
def _matches() -> tuple[Any, Any]:
    """Return the function `matches` of CEL, whose C++ library brings RE2."""
    environment = cel.NewEnv(variables=dict.fromkeys(("pattern", "text"), cel.Type.STRING))
    return environment, environment.compile("text.matches(pattern)")
