"""Check the user and the cluster of a kubeconfig: the `kubernetes` package takes what kubectl refuses."""

from __future__ import annotations

import base64
import json
import math
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MOST_BYTES = 1024 * 1024
"""The most that is read of a file: a hundred clusters with certificates."""

_FILES = ("tokenFile", "client-certificate", "client-key", "certificate-authority")
"""The fields of a user or a cluster that name a file."""

_TEXTS = (
    *_FILES,
    "certificate-authority-data",
    "client-certificate-data",
    "client-key-data",
    "password",
    "proxy-url",
    "tls-server-name",
    "token",
    "username",
)
"""The fields of a user or a cluster that are texts."""

_NAME_OF_SERVER = re.compile(
    r"(?=.{1,253}\Z)[\w-]{1,63}(?:\.[\w-]{1,63})*\.?|[\da-fA-F]*:[\da-fA-F:.]{1,44}", re.ASCII
)
"""A host name or an IP address; the `ssl` module raises all kinds of errors for others."""

_IMPERSONATION = ("as", "as-uid", "as-groups", "as-user-extra")
"""The fields of a user that acts as another one, which the `kubernetes` package does not read."""


def supported(user: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a user in the fields that the package reads, with one token: the one that kubectl sends.

    Raises:
        ValueError: the user acts as another one; or has an auth-provider other than `oidc`, which kubectl has
            refused since 1.26; or one whose token is missing or has expired.
    """
    if any(user.get(key) for key in _IMPERSONATION):
        raise ValueError(f"impersonation ({', '.join(_IMPERSONATION)}) is not supported")
    if text_of(user, "tokenFile"):
        user = {key: value for key, value in user.items() if key != "token"}
    provider = user.get("auth-provider")
    if provider is None:
        return user
    if not isinstance(provider, Mapping) or provider.get("name") != "oidc":
        raise ValueError("only the auth-provider oidc is supported; use an exec plugin")
    config = provider.get("config")
    token = text_of(config, "id-token") if isinstance(config, Mapping) else None
    if not token or _expiry(token) < time.time():
        raise ValueError("the id-token of the auth-provider is missing or has expired; kubectl refreshes it")
    return {**{key: value for key, value in user.items() if key != "auth-provider"}, "token": token}


def _expiry(token: str) -> float:
    """Return when a JSON web token expires, in seconds since 1970; inf if it does not say.

    A time that is no number of 64 bits is in the past: client-go cannot read it, but for a number in quotes.
    """
    try:
        payload = token.split(".")[1]
        expiry = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"]
    except (IndexError, KeyError, TypeError, ValueError, RecursionError):
        return math.inf
    is_number = isinstance(expiry, int | float) and not isinstance(expiry, bool)
    return expiry if is_number and -(2**63) <= expiry < 2**63 else -math.inf


def check_types(entries: Mapping[str, Any]) -> None:
    """Check the fields of a user and a cluster as kubectl does; the package takes `"false"` for true.

    Raises:
        ValueError: one has another type, or is not supported.
    """
    types = dict.fromkeys(_TEXTS, str) | {"insecure-skip-tls-verify": bool}
    wrong = (key for key, of in types.items() if not isinstance(entries.get(key) or of(), of))
    if key := next(wrong, ""):
        raise ValueError(f"{key} must be a {'text' if key in _TEXTS else 'boolean'}")
    name, proxy = entries.get("tls-server-name"), entries.get("proxy-url")
    if name and not _NAME_OF_SERVER.fullmatch(name):
        raise ValueError("tls-server-name must be a host name or an IP address")
    if proxy and not is_http(proxy):
        raise ValueError(f"proxy-url {without_login(proxy)!r}: is not a URL of http or https")


def check_files(entries: Mapping[str, Any]) -> None:
    """Check the files that a user and a cluster name: the package reads them whole, and some never end.

    Raises:
        ValueError: one is a device, is empty, or has more than MOST_BYTES.
    """
    for key, path in paths_in(entries).items():
        try:
            usable = not path.exists() or (path.is_file() and 0 < path.stat().st_size <= MOST_BYTES)
        except OSError as error:  # in a folder of others, or a name that is too long
            raise ValueError(f"{key} {path}: {error.strerror}") from None
        if not usable:
            raise ValueError(f"{key} {path}: is no file of 1 to {MOST_BYTES} bytes")


def paths_in(entries: Mapping[str, Any]) -> dict[str, Path]:
    """Return the paths in a user or a cluster, by field."""
    return {key: Path(path) for key in _FILES if (path := text_of(entries, key))}


def is_http(text: str) -> bool:
    """Whether a text is a URL of http or https."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # `http://[::1`, or a port that is no number
        return False
    return parts.scheme in {"http", "https"} and port != 0


def without_login(server: str) -> str:
    """Return what is no URL without what may be its user, password and query."""
    return re.split(r"[?#]", re.sub(r"(?s)^([A-Za-z][\w+.-]*://)?.*@", r"\1", server))[0]


def text_of(mapping: Any, field: str) -> str | None:
    """Return the text of a field; None if it is empty or no text."""
    value = mapping.get(field)
    return value if isinstance(value, str) and value else None
