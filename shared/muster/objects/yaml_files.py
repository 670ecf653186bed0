"""Read and write YAML with libyaml's C parser where PyYAML was built with it, which is ten times as fast.

`muster run` reads some sixty documents at its start, and a recording has 300 kB of them.
"""

from __future__ import annotations

import codecs
import itertools
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

import yaml

from muster.objects.memory import LIST, MAPPING, SCALAR, DataLimit, memory_of, memory_of_key, memory_of_string
from muster.objects.open_data import OpenData

try:
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as _BaseLoader
except ImportError:  # PyYAML was built without libyaml; the Python classes have the same interface
    from yaml import SafeDumper  # type: ignore[assignment]
    from yaml import SafeLoader as _BaseLoader  # type: ignore[assignment]

__all__ = ["SafeDumper", "SafeLoader", "load", "load_all"]


class SafeLoader(_BaseLoader):
    """A safe loader of what JSON can hold, with timestamps as strings, as the API server sends them."""

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        """Return the tag of a node; of a text of more than NUMBER_LENGTH without quotes that of strings."""
        if kind is yaml.ScalarNode and implicit[0] and len(value) > NUMBER_LENGTH:
            return "tag:yaml.org,2002:str"
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        return tag

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
        except (ValueError, OverflowError, IndexError):  # `!!int x`, `!!int ""`
            number = math.nan
        if -(2**63) <= number < 2**64 if whole else math.isfinite(number):
            return number
        raise yaml.constructor.ConstructorError(None, None, "a number that JSON cannot hold", node.start_mark)

    def construct_boolean(self, node: yaml.ScalarNode) -> bool:
        """Return a boolean.

        Raises:
            ConstructorError: the text is no boolean, such as `!!bool x`.
        """
        with suppress(KeyError):
            return self.construct_yaml_bool(node)
        raise yaml.constructor.ConstructorError(None, None, "no boolean", node.start_mark)

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
SafeLoader.add_constructor("tag:yaml.org,2002:bool", SafeLoader.construct_boolean)
for _type in ("binary", "omap", "pairs", "set", "timestamp"):
    SafeLoader.add_constructor(f"tag:yaml.org,2002:{_type}", SafeLoader.construct_other)

WRITTEN_OUT = 16 * 1024 * 1024
"""The most characters that the aliases of a text may stand for: a few hundred bytes of them, also as merges
(`<<`), can stand for gigabytes."""
DEEPEST = 100
"""The deepest nesting. The C parser ends the process at some ten thousand levels; a Job has about ten."""
MOST_NODES = 500_000
"""The most keys and values of a text with aliases, tags, merges, or keys that are no strings. While PyYAML
makes data of them, each takes up to 800 bytes of memory, and `{a,a}` has one for each character. The
CustomResourceDefinitions of JobSet and Trainer have 31,000."""
_NODE = 800
"""Bytes of a key or value of such a text while PyYAML makes data of it; so much is left of the limit."""
NUMBER_LENGTH = 400
"""The most characters of a number: a float of JSON may have 309 digits before its point. A number of base 60,
such as `1:30`, takes quadratic time, and the pattern that recognizes one 60 bytes for each character."""
MOST_MERGES = 100
"""The most merges (`<<`) of one mapping: PyYAML removes each from a list, which takes quadratic time."""
_WRITTEN = 8
"""Characters that a mapping or a list counts for, and a key or a value beside its own: empty ones are written
out, too."""
_INDENTED = re.compile(rf"(?<![ \t?-])[ \t?-]{{{DEEPEST}}}")
"""A block may be nested so deeply: each level takes a character, in a line that begins after any line end."""
_TAG_DIRECTIVE = re.compile("(?:\\A|[\n\r\x85\u2028\u2029\ufeff])%TAG")
"""A line with a directive: one can give each tag a prefix of a megabyte, and libyaml looks at all of them
whenever it reads one more."""
_ANCHOR = re.compile(r"&[0-9A-Za-z_-]")
"""The begin of an anchor, without which there is no alias. PyYAML and libyaml allow only these characters."""


class _NotPlainError(Exception):
    """A text has an alias, a tag, a merge, or a key that is no string."""


_SCALARS = SafeLoader("")
"""Makes the values of scalars."""


@lru_cache(maxsize=10_000)
def _kind_of(begin: str) -> str:
    """Return the type of a plain scalar in YAML 1.1: `str`, `int` and so on.

    Args:
        begin: its first NUMBER_LENGTH + 1 characters.
    """
    return _SCALARS.resolve(yaml.ScalarNode, begin, (True, False)).rpartition(":")[2]


class _PlainData:
    """Makes data of the events of a parser, without the nodes of PyYAML, which take ten times the memory.

    Args:
        limit: of the memory of the data.
    """

    def __init__(self, limit: DataLimit) -> None:
        self.data = OpenData()
        self._limit = limit
        self._strings: dict[str, str] = {}

    def add(self, event: yaml.Event) -> None:
        """Take the next event.

        Raises:
            _NotPlainError: it has an anchor or a tag, is an alias, or a key that is no string.
            YAMLError: a number is one that JSON cannot hold.
            TooMuchDataError: the data take more memory than the limit.
        """
        if isinstance(event, yaml.NodeEvent):
            if event.anchor is not None or getattr(event, "tag", None) is not None:  # an alias has an anchor
                raise _NotPlainError
            if isinstance(event, yaml.ScalarEvent):
                self._scalar(event)
            elif self.data.key_is_next:
                raise _NotPlainError
            else:
                self._start({} if isinstance(event, yaml.MappingStartEvent) else [])
        elif isinstance(event, yaml.CollectionEndEvent):
            self.data.end()

    def _start(self, container: dict[str, Any] | list[Any]) -> None:
        self._limit.take(MAPPING if isinstance(container, dict) else LIST)
        self.data.start(container)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        kind = _kind_of(event.value[: NUMBER_LENGTH + 1]) if event.implicit[0] else "str"
        is_key = self.data.key_is_next
        if kind not in {"str", "null", "bool", "int", "float"} or (is_key and kind != "str"):
            raise _NotPlainError
        if is_key:
            if event.value not in self._strings:
                self._limit.take(memory_of_key(event.value))
            self.data.key(self._strings.setdefault(event.value, event.value))
        elif kind == "str":
            self._limit.take(memory_of_string(event.value))
            self.data.put(event.value)
        else:
            self._limit.take(SCALAR)
            mark: Any = event.start_mark
            node = yaml.ScalarNode(f"tag:yaml.org,2002:{kind}", event.value, mark)
            self.data.put(_SCALARS.yaml_constructors[node.tag](_SCALARS, node))


def load(text: str | bytes) -> Any:
    """Return the data of a text that is a single YAML document.

    Raises:
        yaml.YAMLError: the text is not YAML, has several documents, is nested too deeply, has too many
            values, or has aliases that repeat too much.
    """
    _check(text, _decoded(text), DataLimit())
    return yaml.load(text, SafeLoader)  # noqa: S506 - a subclass of yaml.SafeLoader


def load_all(text: str | bytes, limit: DataLimit | None = None) -> list[Any]:
    """Return the data of all documents of a YAML stream, without empty documents.

    Args:
        text: the text.
        limit: of the memory of the data, also of other texts; None for one of its own.

    Raises:
        yaml.YAMLError: the text is not YAML, is nested too deeply, has too many values, or has aliases that
            repeat too much.
        TooMuchDataError: the data take more memory than the limit.
    """
    limit = limit or DataLimit()
    known = _decoded(text)
    if len(text) > MOST_NODES // 2:
        left = limit.left
        with suppress(_NotPlainError):
            return _plain_documents(text, limit)
        limit.left = left
    _check(text, known, limit)
    documents = [document for document in yaml.load_all(text, SafeLoader) if document is not None]
    limit.take(memory_of(documents))
    return documents


def _plain_documents(text: str | bytes, limit: DataLimit) -> list[Any]:
    plain = _PlainData(limit)
    for event in _bounded(text):
        plain.add(event)
    return [document for document in plain.data.documents if document is not None]


def lines_of_documents(text: str) -> Iterator[tuple[int, list[int]]]:
    """Yield the line, from 1, of each document of a YAML stream that is not empty, and those of its `items`.

    The lines of items are empty if they are brought by an alias or a merge.
    """
    depth = line = 0
    lines = _LinesOfItems()
    for event in yaml.parse(text, SafeLoader):
        if isinstance(event, yaml.DocumentStartEvent):
            line, lines = 0, _LinesOfItems()
        elif isinstance(event, yaml.DocumentEndEvent) and line:
            yield line, lines.items
        elif isinstance(event, yaml.NodeEvent):
            mark: Any = event.start_mark
            if depth == 0 and not _is_null(event):
                line = mark.line + 1
            lines.add(event, depth, mark.line + 1)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)


class _LinesOfItems:
    """The lines of the entries of the field `items` of a document.

    Attributes:
        items: the lines, from 1.
    """

    def __init__(self) -> None:
        self.items: list[int] = []
        self._at_key = True
        self._of_items = False

    def add(self, event: yaml.NodeEvent, depth: int, line: int) -> None:
        """Take the next key or value, which so many mappings and lists contain."""
        if depth == 1 and self._at_key:
            self._of_items = isinstance(event, yaml.ScalarEvent) and event.value == "items"
        elif depth == 1 and self._of_items:
            self.items = []  # of two fields of a name the last counts
        elif depth == 2 and self._of_items:  # noqa: PLR2004 - an entry of a field
            self.items.append(line)
        if depth == 1:
            self._at_key = not self._at_key


def _is_null(event: yaml.NodeEvent) -> bool:
    """Whether a node is an empty document, or `null`."""
    if not isinstance(event, yaml.ScalarEvent):
        return False
    return event.tag == "tag:yaml.org,2002:null" or (
        event.implicit[0] and _kind_of(event.value[: NUMBER_LENGTH + 1]) == "null"
    )


def _decoded(text: str | bytes) -> str:
    """Return the text as YAML decodes it.

    Raises:
        yaml.YAMLError: it has a directive `%TAG`, which no manifest needs.
    """
    if isinstance(text, bytes):
        encoding = "utf-16" if text[:2] in {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE} else "utf-8"
        text = text.decode(encoding, errors="replace")
    if _TAG_DIRECTIVE.search(text):
        raise yaml.YAMLError("it has a directive %TAG")
    return text


def _check(text: str | bytes, known: str, data: DataLimit) -> None:
    """Look at a text that may be nested too deeply, is long, or has aliases, before its data are made."""
    may_be_deep = known.count("[") + known.count("{") > DEEPEST or _INDENTED.search(known)
    most_nodes = min(MOST_NODES, data.left // _NODE)
    if may_be_deep or len(known) > most_nodes // 2:  # `{a,a}` has no more than two for each character
        nodes = sum(isinstance(event, yaml.NodeEvent) for event in _bounded(text, MOST_NODES))
        data.require(nodes * _NODE)
    if "*" in known and _ANCHOR.search(known):
        documents = yaml.compose_all(text, SafeLoader)
        if sum(_Size().of_aliases(node) for node in documents if node is not None) > WRITTEN_OUT:
            raise yaml.YAMLError(f"aliases stand for more than {WRITTEN_OUT} characters")


def _bounded(text: str | bytes, most_nodes: float = math.inf) -> Iterator[yaml.Event]:
    """Yield the events of a text.

    Raises:
        yaml.YAMLError: it is nested too deeply, or has more keys and values than these.
    """
    depth = nodes = 0
    for event in yaml.parse(text, SafeLoader):
        nodes += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise yaml.YAMLError(f"it is nested more than {DEEPEST} levels deep")
        if nodes > most_nodes:
            raise yaml.YAMLError(f"it has more than {most_nodes} keys and values")
        yield event


class _Size:
    """Counts the characters of a document's nodes, as in the text and with every alias written out."""

    def __init__(self) -> None:
        self._text = 0.0
        self._written_out: dict[int, float] = {}
        """The characters of each node, by its identity."""

    def of_aliases(self, document: yaml.Node) -> float:
        """Return the characters that aliases stand for; infinite if a node contains itself."""
        return self._of(document) - self._text

    def _of(self, node: yaml.Node) -> float:
        known = self._written_out.get(id(node))
        if known is not None:
            return known
        own: float = _WRITTEN + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
        self._text += own
        self._written_out[id(node)] = math.inf
        if isinstance(node, yaml.MappingNode):
            own += sum(self._of(entry) for entry in itertools.chain(*node.value))
        elif isinstance(node, yaml.SequenceNode):
            own += sum(map(self._of, node.value))
        self._written_out[id(node)] = own
        return own
