"""Formats of names, label keys and label values; each check returns what is wrong.

Source: k8s.io/apimachinery v0.37.1, `pkg/api/validate/content`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from muster.simulator.apiserver.refusals import FieldError, invalid

Check = Callable[[str], list[str]]
"""Returns the errors of a string; empty if it is well-formed."""

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = LABEL + r"(?:\." + LABEL + ")*+"
DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"


def _checked(text: str, limit: int, pattern: str, message: str) -> list[str]:
    problems = [f"must be no more than {limit} characters"] if len(text.encode()) > limit else []
    return problems if re.fullmatch(pattern, text, re.ASCII) else [*problems, message]


def problems(field: str, text: str, check: Check) -> list[FieldError]:
    """Return the errors of a field whose value is not well-formed."""
    return [invalid(field, text, problem) for problem in check(text)]


def dns_label(text: str) -> list[str]:
    """Check a DNS label of RFC 1123, at most 63 characters."""
    if "." in text and re.fullmatch(SUBDOMAIN, text, re.ASCII):
        return ["must not contain dots"]
    message = "a lowercase RFC 1123 label has lower case letters, digits or '-', and no '-' at its ends"
    return _checked(text, 63, LABEL, message)


def dns_subdomain(text: str) -> list[str]:
    """Check a DNS subdomain of RFC 1123, at most 253 characters."""
    message = (
        "a lowercase RFC 1123 subdomain has lower case letters, digits, '-' or '.', none of these at its ends"
    )
    return _checked(text, 253, SUBDOMAIN, message)


def dns_1035_label(text: str) -> list[str]:
    """Check a DNS label of RFC 1035, the format of Service names."""
    return _checked(
        text, 63, DNS_1035, "a DNS-1035 label starts with a letter and has letters, digits or '-'"
    )


def path_segment(text: str) -> list[str]:
    """Check a segment of a URL path."""
    return [f"may not contain '{letter}'" for letter in ("/", "%") if letter in text]


def label_key(text: str) -> list[str]:
    """Check a qualified name: an optional DNS prefix and a name of at most 63 characters."""
    prefix, slash, name = text.rpartition("/")
    problems = [f"prefix part {problem}" for problem in dns_subdomain(prefix)] if slash else []
    message = "must consist of letters, digits, '-', '_' or '.', and start and end with a letter or digit"
    return problems + [f"name part {problem}" for problem in _checked(name, 63, KEY, message)]


def label_value(text: str) -> list[str]:
    """Check a label value: at most 63 characters, may be empty."""
    message = (
        "a label consists of letters, digits, '-', '_' or '.', and starts and ends with a letter or digit"
    )
    return _checked(text, 63, f"({KEY})?", message)


def condition_reason(text: str) -> list[str]:
    """Check the reason of a condition."""
    return _checked(text, 1024, REASON, "a condition reason is one word of letters, digits, '_', ',' or ':'")
