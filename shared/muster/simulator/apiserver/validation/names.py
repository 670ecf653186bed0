"""Formats of names, label keys and label values (k8s.io/apimachinery v0.37.1, `pkg/api/validate/content`)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from muster.simulator.apiserver.refusals import FieldError, invalid

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(?:\." + _LABEL + ")*+"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"


@dataclass(frozen=True)
class Form:
    """The pattern of a text and its most characters."""

    pattern: str
    longest: int = 253


DNS_LABEL = Form(_LABEL, 63)
DNS_SUBDOMAIN = Form(_SUBDOMAIN)
PATH_SEGMENT = Form("[^/%]*")
LABEL_KEY = Form(f"({_SUBDOMAIN}/)?(?!.{{64}}){_KEY}", 317)
LABEL_VALUE = Form(f"({_KEY})?", 63)
CONDITION_REASON = Form("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", 1024)


def problems(field: str, text: str, form: Form) -> list[FieldError]:
    """Return the error of a field whose value is not well-formed."""
    if len(text.encode()) > form.longest:
        return [invalid(field, text, f"must be no more than {form.longest} characters")]
    if not re.fullmatch(form.pattern, text, re.ASCII):
        return [invalid(field, text, f"must match {form.pattern}")]
    return []
