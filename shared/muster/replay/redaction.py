"""Remove from objects what may be secret, so that recordings can be passed on.

Secrets are watched by no source. Other objects lose what no step reads: values of environment variables and
HTTP headers, command lines, attributes of CSI volumes, messages of ended containers, passwords and tokens in
URLs, annotations in which a tool stores the applied object, and managedFields. The types of fields do not
change.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

LEFT_OUT = "<left out>"
"""Replaces a removed value."""

ANNOTATIONS = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "kapp.k14s.io/original",
        "kopf.zalando.org/last-handled-configuration",
        "objectset.rio.cattle.io/applied",
        "banzaicloud.com/last-applied",
    }
)
"""Annotations that contain a copy of the object."""

_LOGIN = re.compile(r'://[^/"\s]+@(?!sha256:)')
"""A user's name, password or token in a URL; a digest of an image (`nginx@sha256:...`) is none."""
_QUERY = re.compile(rf'(://(?:{LEFT_OUT}@)?[^\s"?]*\?)[^\s"]+')
"""The query of a URL, whose values may be tokens."""


def without_secrets(value: Any) -> Any:
    """Return a copy of an object, or of any JSON value, without what may be secret."""
    if isinstance(value, list):
        return [without_secrets(entry) for entry in value]
    if isinstance(value, str):
        return _QUERY.sub(rf"\1{LEFT_OUT}", _LOGIN.sub(f"://{LEFT_OUT}@", value))
    if not isinstance(value, dict):
        return value
    return {name: _redacted(name, field) for name, field in value.items() if name != "managedFields"}


def redact_runtime_snapshot(text: str) -> str:
    """Return the text in which the Trainer stores a runtime, redacted as the runtime itself is.

    A text that is no YAML is left out: it may have any form.
    """
    try:
        return json.dumps(without_secrets(yaml.safe_load(text)))
    except (yaml.YAMLError, TypeError, ValueError):
        return LEFT_OUT


def _redacted(name: str, value: Any) -> Any:
    if name == "annotations" and isinstance(value, dict):
        return {key: without_secrets(text) for key, text in value.items() if key not in ANNOTATIONS}
    if name in {"env", "httpHeaders"} and isinstance(value, list):
        return [
            {**entry, "value": LEFT_OUT} if isinstance(entry, dict) and entry.get("value") else entry
            for entry in value
        ]
    if name in {"command", "args"} and isinstance(value, list):
        return [LEFT_OUT if isinstance(word, str) else without_secrets(word) for word in value]
    if name == "volumeAttributes" and isinstance(value, dict):
        return dict.fromkeys(value, LEFT_OUT)
    if name == "terminated" and isinstance(value, dict) and "message" in value:
        return without_secrets(value) | {"message": LEFT_OUT}
    return without_secrets(value)
