"""Formats of names, label keys and label values; each check returns the messages of the real server.

Source: k8s.io/apimachinery v0.37.1, `pkg/api/validate/content`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

Check = Callable[[str], list[str]]
"""Returns the errors of a string; empty if it is well-formed."""

LABEL_FORMAT = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN_FORMAT = LABEL_FORMAT + r"(\." + LABEL_FORMAT + ")*"
DNS_1035_FORMAT = "[a-z]([-a-z0-9]*[a-z0-9])?"
KEY_FORMAT = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
VALUE_FORMAT = "(" + KEY_FORMAT + ")?"
REASON_FORMAT = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"

_SUBDOMAIN = re.compile(LABEL_FORMAT + r"(?:\." + LABEL_FORMAT + ")*+")
"""Matches what SUBDOMAIN_FORMAT matches, without the 100 bytes that it keeps for each matched label."""

_LOWER = "must consist of lower case alphanumeric characters"
_ENDS = "must start and end with an alphanumeric character"


def _mismatch(pattern: str, text: str, message: str, *examples: str) -> list[str]:
    if (_SUBDOMAIN if pattern is SUBDOMAIN_FORMAT else re.compile(pattern, re.ASCII)).fullmatch(text):
        return []
    shown = " or ".join(f"'{example}', " for example in examples)
    return [f"{message} (e.g. {shown}regex used for validation is '{pattern}')"]


def _at_most(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []


def dns_label(text: str) -> list[str]:
    """Check a DNS label of RFC 1123, at most 63 characters."""
    message = f"a lowercase RFC 1123 label {_LOWER} or '-', and {_ENDS}"
    if "." in text and _SUBDOMAIN.fullmatch(text):
        return [*_at_most(text, 63), "must not contain dots"]
    return _at_most(text, 63) + _mismatch(LABEL_FORMAT, text, message, "my-name", "123-abc")


def dns_subdomain(text: str) -> list[str]:
    """Check a DNS subdomain of RFC 1123, at most 253 characters."""
    message = f"a lowercase RFC 1123 subdomain {_LOWER}, '-' or '.', and {_ENDS}"
    return _at_most(text, 253) + _mismatch(SUBDOMAIN_FORMAT, text, message, "example.com")


def dns_1035_label(text: str) -> list[str]:
    """Check a DNS label of RFC 1035, the format of Service names."""
    message = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic character, and end with an alphanumeric character"
    )
    return _at_most(text, 63) + _mismatch(DNS_1035_FORMAT, text, message, "my-name", "abc-123")


def path_segment(text: str) -> list[str]:
    """Check a segment of a URL path."""
    if text in {".", ".."}:
        return [f"may not be '{text}'"]
    return [f"may not contain '{letter}'" for letter in ("/", "%") if letter in text]


def with_characters(check: Check) -> Check:
    """Return the same check with the messages of `pkg/util/validation`, which validates `metadata.name`."""
    return lambda text: [problem.replace(" bytes", " characters") for problem in check(text)]


def label_key(text: str) -> list[str]:
    """Check a qualified name: an optional DNS prefix and a name of at most 63 characters."""
    if text.count("/") > 1:
        message = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and " + _ENDS
        return _mismatch("(?!)", text, message, "MyName", "my.name", "123-abc")
    prefix, slash, name = text.rpartition("/")
    problems: list[str] = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in dns_subdomain(prefix)]
    if not name:
        return [*problems, "name part must be non-empty", *_key_format(name)]
    return problems + [f"name part {problem}" for problem in _at_most(name, 63)] + _key_format(name)


def _key_format(name: str) -> list[str]:
    message = f"must consist of alphanumeric characters, '-', '_' or '.', and {_ENDS}"
    return [
        f"name part {problem}"
        for problem in _mismatch(KEY_FORMAT, name, message, "MyName", "my.name", "123-abc")
    ]


def label_value(text: str) -> list[str]:
    """Check a label value: at most 63 characters, may be empty."""
    message = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
        + _ENDS
    )
    return _at_most(text, 63) + _mismatch(VALUE_FORMAT, text, message, "MyValue", "my_value", "12345")


def condition_reason(text: str) -> list[str]:
    """Check the reason of a condition."""
    message = (
        "a condition reason must start with alphabetic character, optionally followed by a string of "
        "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
    )
    return _mismatch(
        REASON_FORMAT, text, message, "my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"
    )
