"""Decode requests in Kubernetes' protobuf to the objects that JSON would give.

Nothing is encoded: typed clients of Go send `application/vnd.kubernetes.protobuf` and accept JSON in
answers. The format: four magic bytes, then a `runtime.Unknown` with the object's type and bytes
(`k8s.io/apimachinery/pkg/runtime/serializer/protobuf`, v0.37.1). `schemas/regenerate_protobuf.py` collects
the fields of the messages.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from muster.simulator.apiserver import schemas

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"
NUMBERS = frozenset({"bool", "int32", "int64", "uint32", "uint64"})
ZERO: tuple[Any, ...] = ("", 0, False, {}, None)
"""The zero values of Go, which JSON leaves out of fields with omitempty."""


class UnknownMessageError(LookupError):
    """A kind whose protobuf message is not known."""


class WireField(NamedTuple):
    """A field of a message.

    Attributes:
        name: the name in JSON; empty if the message is inlined.
        type: `string`, `int64` and so on, or the full name of a message.
        flags: `r` for repeated, `m` for a map from strings, `z` if JSON shows the zero value.
    """

    name: str
    type: str
    flags: str


def decode(data: bytes) -> Any:
    """Return the object in a protobuf body, as JSON would give it.

    Raises:
        UnknownMessageError: the message of its kind is not known.
        ValueError: it is malformed.
    """
    if not data.startswith(MAGIC):
        raise ValueError("the magic bytes k8s\\x00 are missing")
    try:
        unknown = dict(_fields(data[len(MAGIC) :]))
        kind_of = {number: value.decode() for number, value in _fields(unknown[1])}
        api_version, kind = kind_of.get(1, ""), kind_of.get(2, "")
        kinds, _ = _tables()
        message = kinds.get(f"{api_version}/{kind}") or kinds.get(kind)
        if message is None:
            raise UnknownMessageError(f"{kind} of {api_version}")
        return {"apiVersion": api_version, "kind": kind} | _message(unknown.get(2, b""), message)
    except (
        KeyError,
        IndexError,
        AttributeError,
        TypeError,
        struct.error,
        OverflowError,
        RecursionError,
    ) as error:
        raise ValueError(f"malformed protobuf: {error}") from error


@cache
def _tables() -> tuple[dict[str, str], dict[str, dict[int, WireField]]]:
    """Return the messages of the kinds, and the fields of every message by number."""
    data = schemas.read_data("protobuf-1.37.1")
    messages = {
        name: {int(number): WireField(*field) for number, field in fields.items()}
        for name, fields in data["messages"].items()
    }
    return data["kinds"], messages


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the raw value of each field: an int, or bytes."""
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        wire = key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        if wire == 2:  # noqa: PLR2004 - the wire types of protobuf: 2 is bytes with their length
            size, position = _varint(data, position)
        elif wire in {1, 5}:
            size = 8 if wire == 1 else 4
        else:
            raise ValueError(f"malformed protobuf: wire type {wire}")
        if position + size > len(data):
            raise ValueError("malformed protobuf: it ends within a field")
        yield key >> 3, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value, shift = 0, 0
    while shift < 64:  # noqa: PLR2004 - bits of the longest number
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last byte
            return value, position
        shift += 7
    raise ValueError("malformed protobuf: a number is longer than 64 bits")


def _message(data: bytes, name: str) -> Any:
    special = SPECIAL.get(name.rpartition(".")[2])
    if special is not None:
        return special(dict(_fields(data)), name)
    known = _tables()[1][name]
    obj: dict[str, Any] = {}
    for number, raw in _fields(data):
        field = known.get(number)
        if field is not None:
            _set(obj, field, raw)
    return obj


def _set(obj: dict[str, Any], field: WireField, raw: Any) -> None:
    """Set a field of an object, or add to it."""
    if "m" in field.flags:
        entry = dict(_fields(raw))
        value = _value(entry[2], field.type) if 2 in entry else ""  # noqa: PLR2004 - key 1, value 2
        obj.setdefault(field.name, {})[entry.get(1, b"").decode()] = value
    elif "r" in field.flags:
        packed = isinstance(raw, bytes) and field.type in {"int32", "int64"}
        raws = _packed(raw) if packed else [raw]
        obj.setdefault(field.name, []).extend(_value(each, field.type) for each in raws)
    else:
        value = _value(raw, field.type)
        if not field.name:
            obj.update(value)
        elif "z" in field.flags or value not in ZERO:
            obj[field.name] = value


def _packed(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


def _value(raw: Any, type_name: str) -> Any:
    if isinstance(raw, int) != (type_name in NUMBERS):
        raise ValueError(f"malformed protobuf: wrong wire type for {type_name.rpartition('.')[2]}")
    match type_name:
        case "string":
            return raw.decode()
        case "bytes":
            return base64.b64encode(raw).decode()
        case "bool":
            return bool(raw)
        case "int32" | "int64":
            return _signed(raw)
        case "uint32" | "uint64":
            return raw
        case "double":
            return struct.unpack("<d", raw)[0]
        case _:
            return _message(raw, type_name)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _time(fields: dict[int, Any], name: str) -> str | None:
    """RFC 3339, with microseconds for a MicroTime; None for the zero time."""
    if not fields:
        return None
    moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=_signed(fields.get(1, 0)))
    micro = f".{fields.get(2, 0) // 1000:06d}" if name.endswith("MicroTime") else ""
    return f"{moment:%Y-%m-%dT%H:%M:%S}{micro}Z"


def _int_or_string(fields: dict[int, Any], _name: str) -> int | str:
    return fields.get(3, b"").decode() if fields.get(1) else _signed(fields.get(2, 0))


def _raw_json(fields: dict[int, Any], _name: str) -> Any:
    return json.loads(fields.get(1) or b"null")


def _schema_or(fields: dict[int, Any], name: str) -> Any:
    """JSONSchemaPropsOrBool, …OrArray or …OrStringArray: the schema, else the other value."""
    package = name.rpartition(".")[0]
    if name.endswith("OrBool"):
        return _message(fields[2], f"{package}.JSONSchemaProps") if 2 in fields else bool(fields.get(1))  # noqa: PLR2004
    if 1 in fields:
        return _message(fields[1], f"{package}.JSONSchemaProps")
    raise ValueError(f"{name.rpartition('.')[2]} with a list is not supported in protobuf")


SPECIAL: dict[str, Callable[[dict[int, Any], str], Any]] = {
    "Quantity": lambda fields, _name: fields.get(1, b"").decode(),
    "Time": _time,
    "MicroTime": _time,
    "IntOrString": _int_or_string,
    "FieldsV1": _raw_json,
    "RawExtension": _raw_json,
    "JSON": _raw_json,
    "JSONSchemaPropsOrBool": _schema_or,
    "JSONSchemaPropsOrArray": _schema_or,
    "JSONSchemaPropsOrStringArray": _schema_or,
}
"""The messages that JSON writes in another form."""
