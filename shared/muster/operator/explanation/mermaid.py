"""An explanation as a Mermaid flowchart, for a README or a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from muster.operator.explanation.explain import Explanation
from muster.operator.explanation.text import described, names_of
from muster.policy.groups import Group
from muster.policy.kinds import Gang


def as_mermaid(explained: Explanation) -> str:
    """The owner, its groups, and a note where they cannot be had."""
    return "\n".join(["flowchart TD", *(f"  {line}" for line in _lines(explained))]) + "\n"


def _lines(explained: Explanation) -> Iterator[str]:
    yield f"owner[{_quoted(str(explained.owner))}]"
    why = explained.flaw or explained.left_alone
    if why is not None:
        yield f"why{{{{{_quoted(f'{why.reason}: {why.message}')}}}}}"
        yield "owner -.- why"
    if explained.gang is not None:
        for root in explained.tree:
            yield from _branch(root, explained.gang, "owner")


def _branch(group: Group, gang: Gang, above: str) -> Iterator[str]:
    # Only letters, digits and underscores are sure to be an identifier; group names are DNS labels.
    here = f"g_{group.name.replace('-', '_')}"
    label = _quoted("<br/>".join([f"{group.name}: {described(group)}", *names_of(group, gang)]))
    yield f"{here}([{label}])" if group.children else f"{here}[{label}]"
    yield f"{above} --> {here}"
    for child in group.children:
        yield from _branch(child, gang, here)


def _quoted(text: str) -> str:
    safe = text.replace('"', "#quot;").replace("\n", " ")
    return f'"{safe}"'
