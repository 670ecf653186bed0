"""Read and write YAML with libyaml's C parser where PyYAML was built with it, which is ten times as fast.

`muster run` reads some sixty documents at its start, and a recording has 300 kB of them.
"""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import yaml

try:
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as _BaseLoader
except ImportError:  # PyYAML was built without libyaml; the Python classes have the same interface
    from yaml import SafeDumper  # type: ignore[assignment]
    from yaml import SafeLoader as _BaseLoader  # type: ignore[assignment]

__all__ = ["SafeDumper", "SafeLoader", "load", "load_all"]


class SafeLoader(_BaseLoader):
    """A safe loader of what JSON can hold, with timestamps as strings, as the API server sends them."""

    def construct_number(self, node: yaml.ScalarNode) -> int | float:
        """Return a number of JSON.

        Raises:
            ConstructorError: it is infinite, or no number, or a whole number of more than 64 bits, or longer
                than NUMBER_LENGTH.
        """
        if len(node.value) > NUMBER_LENGTH:
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"a number has {len(node.value)} characters, at most {NUMBER_LENGTH} are read",
                node.start_mark,
            )
        whole = node.tag.endswith(":int")
        try:
            number = self.construct_yaml_int(node) if whole else self.construct_yaml_float(node)
        except (ValueError, OverflowError):  # `!!int x`
            number = math.nan
        if -(2**63) <= number < 2**64 if whole else math.isfinite(number):
            return number
        raise yaml.constructor.ConstructorError(None, None, "a number that JSON cannot hold", node.start_mark)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Replace the merges (`<<`) of a mapping by what they stand for.

        Raises:
            ConstructorError: it has more merges than MOST_MERGES.
        """
        if sum(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value) > MOST_MERGES:
            raise yaml.constructor.ConstructorError(
                None, None, f"a mapping has more than {MOST_MERGES} merges", node.start_mark
            )
        super().flatten_mapping(node)

    def construct_other(self, node: yaml.Node) -> Any:
        """Refuse a type that JSON does not have, such as `!!binary` and `!!set`."""
        raise yaml.constructor.ConstructorError(None, None, f"{node.tag} is no type of JSON", node.start_mark)


SafeLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in _BaseLoader.yaml_implicit_resolvers.items()
}

for _type in ("int", "float"):
    SafeLoader.add_constructor(f"tag:yaml.org,2002:{_type}", SafeLoader.construct_number)
for _type in ("binary", "omap", "pairs", "set", "timestamp"):
    SafeLoader.add_constructor(f"tag:yaml.org,2002:{_type}", SafeLoader.construct_other)

WRITTEN_OUT = 16 * 1024 * 1024
"""The most characters of data with every alias written out, unless the text has a sixteenth of them itself:
a few hundred bytes of aliases, also as merges (`<<`), can stand for gigabytes."""
DEEPEST = 100
"""The deepest nesting. The C parser ends the process at some ten thousand levels; a Job has about ten."""
MOST_NODES = 1_500_000
"""The most keys and values of a text: fifteen thousand Jobs. Each takes some 400 bytes of memory, and `{a,a}`
has one for each character."""
NUMBER_LENGTH = 400
"""The most characters of a number: a float of JSON may have 309 digits before its point. A number of base 60,
such as `1:30`, takes quadratic time."""
MOST_MERGES = 100
"""The most merges (`<<`) of one mapping: PyYAML removes each from a list, which takes quadratic time."""
_CONTAINER = 8
"""Characters that a mapping or a list counts for."""
_INDENTED = re.compile(rf"[ \t?-]{{{DEEPEST}}}")
"""A block may be nested so deeply: each level takes a character, in a line that begins after any line end."""
_ANCHOR = re.compile(r"&[0-9A-Za-z_-]")
"""The begin of an anchor, without which there is no alias. PyYAML and libyaml allow only these characters."""


def load(text: str | bytes) -> Any:
    """Return the data of a text that is a single YAML document.

    Raises:
        yaml.YAMLError: the text is not YAML, has several documents, is nested too deeply, has too many
            values, or has aliases that repeat too much.
    """
    _check(text)
    return yaml.load(text, SafeLoader)  # noqa: S506 - a subclass of yaml.SafeLoader


def load_all(text: str | bytes) -> list[Any]:
    """Return the data of all documents of a YAML stream, without empty documents.

    Raises:
        yaml.YAMLError: the text is not YAML, is nested too deeply, has too many values, or has aliases that
            repeat too much.
    """
    _check(text)
    return [document for document in yaml.load_all(text, SafeLoader) if document is not None]


def _check(text: str | bytes) -> None:
    """Look at a text that may be nested too deeply, is long, or has aliases, before its data are made."""
    known = text if isinstance(text, str) else text.replace(b"\0", b"").decode(errors="replace")  # or UTF-16
    may_be_deep = known.count("[") + known.count("{") > DEEPEST or _INDENTED.search(known)
    if may_be_deep or len(known) > MOST_NODES // 2:  # `{a,a}` has no more than two for each character
        _check_events(text)
    if "*" in known and _ANCHOR.search(known):
        limit = max(WRITTEN_OUT, 16 * len(text))
        sizes: dict[int, int] = {}
        documents = yaml.compose_all(text, SafeLoader)
        if sum(_size(node, limit, sizes) for node in documents if node is not None) > limit:
            raise yaml.YAMLError(f"aliases stand for more than {limit} characters")


def _check_events(text: str | bytes) -> None:
    """Refuse a text that is nested too deeply, or has too many keys and values."""
    depth = nodes = 0
    for event in yaml.parse(text, SafeLoader):
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.YAMLError(f"it is nested more than {DEEPEST} levels deep")
        if nodes > MOST_NODES:
            raise yaml.YAMLError(f"it has more than {MOST_NODES} keys and values")


def _size(node: yaml.Node, limit: int, sizes: dict[int, int]) -> int:
    """Return the characters of a node with every alias written out.

    Args:
        node: the node.
        limit: of the characters; more stand for a node that contains itself.
        sizes: the characters of mappings and lists that were counted already, by their identity.
    """
    if isinstance(node, yaml.ScalarNode):
        return len(node.value)
    if id(node) not in sizes:
        sizes[id(node)] = limit + 1
        entries = itertools.chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value
        sizes[id(node)] = _CONTAINER + sum(_size(entry, limit, sizes) for entry in entries)
    return sizes[id(node)]
