"""The syntax of CloudEvents attributes, as github.com/cloudevents/sdk-go/v2 2.16.1 reads and validates them.

Knative's ingress answers 400 to an event that breaks these rules. Not checked: host names of a source beyond
their brackets and port, and repeated parameters of a content type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

VERSIONS = frozenset({"1.0", "0.3"})

_NAME = re.compile(r"[A-Za-z0-9]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BROKEN_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_MEDIA_TYPE = re.compile(rf'{_WORD}(/{_WORD})?(\s*+;\s*+{_WORD}=({_WORD}|"[^"]*+"))*+\s*+;?\s*+')
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d?:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)")
_INT32 = 2**31
_LONGEST = 1024 * 1024
"""The most characters of an attribute: a server in Go reads headers of a mebibyte at most."""


class NotAnEventError(ValueError):
    """The message is not a valid CloudEvent."""


def well_formed(text: str) -> str:
    """Return a text with U+FFFD for each lone surrogate, as Go's encoding/json reads them."""
    return _SURROGATE.sub("\ufffd", text)


def extension_name(name: str) -> str:
    """Return the lower-case name of an extension.

    Raises:
        NotAnEventError: it has characters other than letters and digits.
    """
    if not _NAME.fullmatch(name):
        raise NotAnEventError(f"attribute {name!r}: a name has only letters and digits")
    return name.lower()


def text_of(name: str, value: Any) -> str:
    """Return the text of an attribute's JSON value; numbers lose their fraction (`types.Validate`).

    Raises:
        NotAnEventError: the value is an object, a list or a number beyond 32 bits.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float) and -_INT32 <= value < _INT32:
        return str(int(value))
    raise NotAnEventError(f"{name}: {value!r} is no string, boolean or 32-bit number")


def parsed(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes in the form in which a broker passes them on.

    Values are well-formed and trimmed, times are in UTC, sources are escaped, and empty optional attributes
    are left out.

    Raises:
        NotAnEventError: the specversion is unknown, the id is empty, a time or URI cannot be parsed, or an
            attribute is too long for a header.
    """
    _check_lengths(attributes)
    attributes = {name: well_formed(value) for name, value in attributes.items()}
    version = attributes.get("specversion", "")
    if version not in VERSIONS:
        raise NotAnEventError(
            f"specversion {version!r} is neither 1.0 nor 0.3" if version else "no specversion"
        )
    schema = schema_name(attributes)
    result = dict(attributes)
    for name in {"id", "type", "subject", "datacontenttype", schema} & attributes.keys():
        result[name] = attributes[name].strip()
    if result.get("id") == "":
        raise NotAnEventError("no id")
    for name in {"subject", "datacontenttype", schema}:
        if result.get(name) == "":
            del result[name]
    for name in {"source", schema} & result.keys():
        result[name] = _uri_reference(name, result[name])
    if "time" in result:
        result["time"] = _utc(result["time"])
    _check_lengths(result)  # escaped, a source is longer
    return result


def _check_lengths(attributes: Mapping[str, str]) -> None:
    if too_long := [name for name, value in attributes.items() if len(value) > _LONGEST]:
        raise NotAnEventError(f"{too_long[0]} has more than {_LONGEST} characters")


def problem(attributes: Mapping[str, str]) -> str:
    """Return why parsed attributes are no valid event; empty if they are one (`EventContextV1.Validate`)."""
    if missing := [name for name in ("id", "source", "type") if not attributes.get(name, "").strip()]:
        return f"no {', '.join(missing)}"
    if (content_type := attributes.get("datacontenttype")) and not _MEDIA_TYPE.fullmatch(content_type):
        return f"datacontenttype {content_type!r} is no media type"
    schema = attributes.get("dataschema", "")
    if schema and attributes["specversion"] == "1.0" and not _SCHEME.match(schema):
        return f"dataschema {schema!r} is no absolute URI"
    return ""


def schema_name(attributes: Mapping[str, str]) -> str:
    """Return the name of the attribute with the schema, which depends on the specversion."""
    return "schemaurl" if attributes.get("specversion") == "0.3" else "dataschema"


def media_type(content_type: str) -> str:
    """Return the media type of a content type in lower case, without parameters."""
    return content_type.partition(";")[0].strip().lower()


def _uri_reference(name: str, text: str) -> str:
    """Return a URI reference with its blanks escaped (`url.Parse` and `String` of Go)."""
    without_query = text.partition("?")[0] + text.partition("#")[2]
    try:
        port = urlsplit(text).port
    except ValueError as error:
        raise NotAnEventError(f"{name} {text!r} is no URI reference: {error}") from error
    del port
    first_segment = re.split(r"[/?#]", text, maxsplit=1)[0]
    if (
        _CONTROL.search(text)
        or _BROKEN_PERCENT.search(without_query)
        or (":" in first_segment and not _SCHEME.match(text))
    ):
        raise NotAnEventError(f"{name} {text!r} is no URI reference")
    return quote(text, safe="!#$%&'()*+,/:;=?@[]~")


def _utc(text: str) -> str:
    """Return an RFC 3339 time in UTC, with nanoseconds at most and without zeros at the end of a fraction."""
    match = _TIME.fullmatch(text)
    if not match:
        raise NotAnEventError(f"time {text!r} is not in the form of RFC 3339")
    try:
        seconds, fraction, zone = match.groups()
        hours = (int(zone[:3]), int(zone[0] + zone[4:])) if zone != "Z" else (0, 0)
        local = datetime.strptime(seconds, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
        time = local - timedelta(hours=hours[0], minutes=hours[1])
    except (ValueError, OverflowError) as error:
        raise NotAnEventError(f"time {text!r}: {error}") from error
    digits = (fraction or "")[:9].rstrip("0")
    return f"{time.replace(tzinfo=None).isoformat(timespec='seconds')}{'.' if digits else ''}{digits}Z"
