"""Strict parsing of YAML that a tenant wrote: bounded before it is parsed, and linear in its length.

The text is data as JSON has it: mappings with strings as keys, lists, strings, numbers, true, false and null.
Anchors, aliases, tags, directives, several documents and duplicate keys are refused. Only the events of the
YAML parser are used, because the composer and the constructor of PyYAML recurse, expand aliases, and raise
other errors than YAMLError for tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Never, Protocol

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from muster.objects.open_data import OpenData
from muster.objects.yaml_files import SafeLoader
from muster.policy import limits


class BadYamlError(Exception):
    """The text is no YAML, is above a limit, or has something that is refused, such as aliases."""


@dataclass(frozen=True)
class TextLimits:
    """The limits of a text.

    Attributes:
        size: bytes of UTF-8.
        size_name: the name of this limit in `muster.policy.limits`, for messages.
        depth: nested lists and mappings.
        depth_name: the name of this limit.
    """

    size: int
    size_name: str
    depth: int
    depth_name: str


POLICY = TextLimits(limits.POLICY_BYTES, "POLICY_BYTES", limits.POLICY_DEPTH, "POLICY_DEPTH")
STORED = TextLimits(limits.STORED_POLICY_BYTES, "STORED_POLICY_BYTES", limits.POLICY_DEPTH, "POLICY_DEPTH")
SNAPSHOT = TextLimits(limits.SNAPSHOT_BYTES, "SNAPSHOT_BYTES", limits.SNAPSHOT_DEPTH, "SNAPSHOT_DEPTH")


def load(text: str, bounds: TextLimits = POLICY) -> Any:
    """Return the data of a YAML or JSON text; None if it is empty.

    Raises:
        BadYamlError: the text is invalid; the message has the error and the line.
    """
    check_size(text, bounds)
    try:
        return _Builder(bounds).build(yaml.parse(text, SafeLoader))
    except yaml.MarkedYAMLError as error:
        _refuse(error.problem or "invalid", error.problem_mark)
    except (yaml.YAMLError, ValueError) as error:  # ValueError: text that UTF-8 cannot encode
        raise BadYamlError(shortened(" ".join(str(error).split()))) from error


def check_size(text: str, bounds: TextLimits = POLICY) -> None:
    """Refuse a text that is too long to be parsed, or that UTF-8 cannot encode.

    Raises:
        BadYamlError: see above.
    """
    if not isinstance(text, str):  # only in a forged event: the API server stores strings
        raise BadYamlError(f"is no text but {type(text).__name__}")
    # Every character has at least one byte, so that a longer text need not be encoded.
    try:
        size = len(text) if len(text) > bounds.size else len(text.encode())
    except UnicodeEncodeError:
        raise BadYamlError("has a character that UTF-8 cannot encode") from None
    if size > bounds.size:
        raise BadYamlError(f"has {size} bytes, at most {bounds.size} are read ({bounds.size_name})")


def check_data(data: Any, bounds: TextLimits = POLICY) -> None:
    """Refuse parsed data above the limits of its text; the work is bounded by the limits.

    Raises:
        BadYamlError: it is nested too deeply, or its keys and values are too long together.
    """
    size = 0
    rest: list[tuple[Any, int]] = [(data, 0)]
    while rest:
        value, depth = rest.pop()
        size += _size_of(value)
        if isinstance(value, (Mapping, list)):
            if depth == bounds.depth:
                raise BadYamlError(_too_deep(bounds))
            size += 2 * len(value)
        if size > bounds.size:
            raise BadYamlError(f"has more than {bounds.size} bytes ({bounds.size_name})")
        if isinstance(value, Mapping):
            rest += ((part, depth + 1) for pair in value.items() for part in pair)
        elif isinstance(value, list):
            rest += ((part, depth + 1) for part in value)


def shortened(text: str, length: int = limits.MESSAGE_LENGTH) -> str:
    """Return the beginning of a tenant's text, with control characters escaped, for a message."""
    printable = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text[:length]
    )
    return printable if len(text) <= length else f"{printable}…"


class _Scalars(SafeConstructor, Resolver):
    """The YAML 1.1 rules for null, booleans and numbers, as in PyYAML; timestamps stay strings."""

    yaml_implicit_resolvers = SafeLoader.yaml_implicit_resolvers

    def __init__(self) -> None:
        SafeConstructor.__init__(self)
        Resolver.__init__(self)

    def value(self, event: yaml.ScalarEvent) -> Any:
        """Return the value of a scalar.

        Raises:
            yaml.YAMLError: it is a number that is too long.
            ValueError: it looks like a number and is none, or UTF-8 cannot encode it.
        """
        event.value.encode()
        if not event.implicit[0]:  # quoted, or a block
            return event.value
        tag: str = self.resolve(yaml.ScalarNode, event.value, (True, False))  # type: ignore[no-untyped-call]
        kind = tag.rpartition(":")[2]
        node = yaml.ScalarNode("", event.value)
        if kind == "null":
            return None
        if kind == "bool":
            return self.construct_yaml_bool(node)
        if kind not in {"int", "float"}:
            return event.value
        if len(event.value) > limits.NUMBER_LENGTH:
            _refuse(
                f"a number has {len(event.value)} characters, at most {limits.NUMBER_LENGTH} are read "
                "(NUMBER_LENGTH)",
                event.start_mark,
            )
        return self.construct_yaml_int(node) if kind == "int" else self.construct_yaml_float(node)


_SCALARS = _Scalars()


class _Builder:
    """Builds data from the events of one document, without recursion."""

    def __init__(self, bounds: TextLimits) -> None:
        self._bounds = bounds
        self._data = OpenData()

    def build(self, events: Iterable[yaml.Event]) -> Any:
        for event in events:
            self._add(event)
        return self._data.documents[0] if self._data.documents else None

    def _add(self, event: yaml.Event) -> None:
        _check_plain(event)
        if isinstance(event, yaml.DocumentStartEvent) and self._data.documents:
            _refuse("several documents are not allowed", event.start_mark)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent):
            self._start({}, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._start([], event)
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._data.end()

    def _start(self, value: dict[str, Any] | list[Any], event: yaml.Event) -> None:
        if self._data.key_is_next:
            _refuse("a key must be a string", event.start_mark)
        if self._data.depth >= self._bounds.depth:
            _refuse(_too_deep(self._bounds), event.start_mark)
        self._data.start(value)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        if not self._data.key_is_next:
            self._data.put(_SCALARS.value(event))
            return
        event.value.encode()
        if event.value in self._data.innermost:
            _refuse(f"{event.value} is given twice", event.start_mark)
        self._data.key(event.value)


def _check_plain(event: yaml.Event) -> None:
    """Refuse anchors, aliases, tags and directives."""
    if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
        _refuse("anchors and aliases are not allowed", event.start_mark)
    if getattr(event, "tag", None) is not None:
        _refuse("tags are not allowed", event.start_mark)
    if isinstance(event, yaml.DocumentStartEvent) and (event.tags or event.version):
        _refuse("directives are not allowed", event.start_mark)


class _Position(Protocol):
    """A place in a text, as both parsers of PyYAML give it; lines and columns are counted from 0."""

    line: int
    column: int


def _refuse(message: str, mark: _Position | None) -> Never:
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    raise BadYamlError(f"{shortened(message)}{where}")


def _too_deep(bounds: TextLimits) -> str:
    return f"nested more than {bounds.depth} levels deep ({bounds.depth_name})"


def _size_of(value: Any) -> int:
    """Return the bytes of a value in JSON, about; a container counts for itself only."""
    if isinstance(value, str):
        return len(value) + 2
    return 1 + value.bit_length() // 4 if isinstance(value, int) else 2
