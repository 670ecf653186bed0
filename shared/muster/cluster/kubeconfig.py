"""Kubeconfig files as kubectl reads them: several are merged, and a context chooses server and credentials.

All commands and functions read them here. The `kubernetes` package loads certificates, tokens and exec
plugins of the chosen context. It takes the last of several current-contexts, does without a user that is not
there, goes on without credentials where a plugin fails, and refreshes the token of an auth-provider without a
limit of time or memory; this module takes the first current-context, as kubectl does, fails in the next two
cases, and refreshes nothing.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.config.kube_config import load_kube_config_from_dict

from muster.cluster.http.client import Client
from muster.cluster.kubeconfig_entries import (
    MOST_BYTES,
    check_files,
    check_types,
    is_http,
    paths_in,
    supported,
    text_of,
    without_login,
)
from muster.objects import yaml_files
from muster.objects.memory import DataLimit, TooMuchDataError

_LISTS = {"contexts": "context", "clusters": "cluster", "users": "user"}
"""The lists of a kubeconfig, and the field of an entry beside its name."""

MOST_DATA = 16 * 1024 * 1024
"""The most memory of the data of all files: three thousand clusters without certificates."""

_UNLIKE_YAML = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
"""Characters that a text of JSON may have as they are, and one of YAML only as escapes."""


class BadKubeconfigError(Exception):
    """A kubeconfig cannot be used; the message is one line that begins with the file."""


@dataclass(frozen=True)
class Kubeconfig:
    """One context of one or several files.

    Attributes:
        files: the files that exist, in order of precedence.
        context: its name.
        namespace: the namespace of the context; "default" if it has none.
        server: the URL of the API server.
        cluster: the entry of its cluster; paths are absolute.
        user: that of its user; empty if it has none.
        plugin: the command of the exec plugin that gets credentials; "" if there is none.
    """

    files: tuple[Path, ...]
    context: str
    namespace: str
    server: str
    cluster: Mapping[str, Any] = field(repr=False)
    user: Mapping[str, Any] = field(repr=False)
    plugin: str = ""

    @property
    def content(self) -> dict[str, Any]:
        """A kubeconfig with the context alone, its cluster and its user."""
        context = {"cluster": "its-cluster", "user": "its-user", "namespace": self.namespace}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": self.context,
            "contexts": [{"name": self.context, "context": context}],
            "clusters": [{"name": "its-cluster", "cluster": _used_fields(self.cluster)}],
            "users": [{"name": "its-user", "user": _used_fields(self.user)}],
        }

    @property
    def text(self) -> str:
        """The content as a file has it: JSON that is YAML too, and written in a fraction of the time."""
        text = json.dumps(self.content, ensure_ascii=False, separators=(",", ": "))
        return _UNLIKE_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)

    def client(self, user_agent: str, **options: Any) -> Client:
        """Return a client with the credentials of the context; runs the exec plugin, if there is one.

        Args:
            user_agent: the caller's name in the API server's audit log.
            options: further arguments of `Client`.

        Raises:
            BadKubeconfigError: a certificate cannot be read, or the plugin failed.
        """
        configuration = Configuration()
        paths = os.pathsep.join(map(str, self.files))
        with _logged_errors() as failures:
            try:
                load_kube_config_from_dict(self.content, client_configuration=configuration)
                client = Client(configuration, user_agent=user_agent, keep_certificates=True, **options)
            except Exception as error:  # noqa: BLE001 - the package raises any kind of error for an invalid kubeconfig
                raise BadKubeconfigError(f"{paths}: context {self.context!r}: {_one_line(error)}") from None
        if failures:
            source = f"exec plugin {self.plugin!r}: " if self.plugin else ""
            raise BadKubeconfigError(
                f"{paths}: context {self.context!r}: {source}{_one_line(failures[0].removeprefix('exec: '))}"
            )
        return client


def client_of(kubeconfig: str, user_agent: str = "muster", **options: Any) -> Client:
    """Return a client of the current context of the files that a value of the variable KUBECONFIG lists.

    Args:
        kubeconfig: the value.
        user_agent: the caller's name in the API server's audit log.
        options: further arguments of `Client`.

    Raises:
        BadKubeconfigError: no file exists, or they cannot be used.
    """
    try:
        return read_kubeconfig(listed(kubeconfig)).client(user_agent, **options)
    except OSError as error:  # a file in a folder of others, or with a name that is too long
        raise BadKubeconfigError(f"{error.filename or kubeconfig}: {_one_line(error)}") from None


def listed(kubeconfig: str) -> list[Path]:
    """Return the files that a value of the variable KUBECONFIG lists."""
    return [expanded(Path(path)) for path in kubeconfig.split(os.pathsep) if path]


def expanded(path: Path) -> Path:
    """Return a path with the home folder in place of `~`; as it is if there is no such user or folder."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


def read_kubeconfig(paths: Sequence[Path], context: str = "") -> Kubeconfig:
    """Return a context of kubeconfig files; of entries with the same name the first one counts.

    Args:
        paths: the files; those that do not exist are skipped.
        context: its name; "" for the current-context.

    Raises:
        BadKubeconfigError: no file exists, one cannot be read, or the context is missing or incomplete.
    """
    files = tuple(path for path in paths if path.exists())
    named = ", ".join(map(str, files or paths))
    if not files:
        raise BadKubeconfigError(f"{named}: No such file")
    limit = DataLimit(MOST_DATA)
    documents = [_read(path, limit) for path in files]
    entries = {name: _merged(name, zip(files, documents, strict=True)) for name in _LISTS}
    current = (text_of(document, "current-context") for document in documents)
    chosen = context or next(filter(None, current), "")
    contexts = entries["contexts"]
    known = f"--context chooses from {', '.join(map(repr, contexts))}" if contexts else "nor any context"
    if not chosen:
        raise BadKubeconfigError(f"{named}: has no current-context; {known}")
    if chosen not in contexts:
        raise BadKubeconfigError(f"{named}: has no context {chosen!r}; {known}")
    found = contexts[chosen]
    user = _entry(named, chosen, entries["users"], "user", text_of(found, "user"))
    cluster = _entry(named, chosen, entries["clusters"], "cluster", text_of(found, "cluster"))
    server = text_of(cluster, "server") or ""
    if not is_http(server):
        raise BadKubeconfigError(
            f"{named}: cluster {text_of(found, 'cluster')!r}: server {without_login(server)!r} is not a URL"
            if server
            else f"{named}: cluster {text_of(found, 'cluster')!r} has no server"
        )
    plugin = user.get("exec")
    command = text_of(plugin, "command") if isinstance(plugin, Mapping) else ""
    namespace = text_of(found, "namespace") or "default"
    try:
        check_types({**cluster, **user})
        user = supported(user)
        check_files({**cluster, **user})
    except ValueError as error:
        raise BadKubeconfigError(f"{named}: context {chosen!r}: {error}") from None
    return Kubeconfig(files, chosen, namespace, server, cluster, user, command or "")


def _used_fields(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a cluster or a user without what other programs keep in it, and without fields that are null."""
    return {key: value for key, value in entry.items() if key != "extensions" and value is not None}


def _read(path: Path, limit: DataLimit) -> Mapping[str, Any]:
    """Return the content of a file."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise BadKubeconfigError(f"{path}: has more than {MOST_BYTES} bytes")
        documents = yaml_files.load_all(content.decode(), limit)
    except UnicodeDecodeError as error:
        raise BadKubeconfigError(f"{path}: is not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise BadKubeconfigError(f"{path}: {error.strerror}") from None
    except TooMuchDataError as error:
        raise BadKubeconfigError(f"{path}: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
        raise BadKubeconfigError(f"{place}: is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadKubeconfigError(f"{path}: is not YAML: {_one_line(error)}") from None
    if not documents:
        raise BadKubeconfigError(f"{path}: is empty")
    if not isinstance(documents[0], Mapping):
        raise BadKubeconfigError(f"{path}: is not a kubeconfig")
    return documents[0]


def _merged(name: str, documents: Iterator[tuple[Path, Mapping[str, Any]]]) -> dict[str, Mapping[str, Any]]:
    """Return the entries of a list of all files by name."""
    merged: dict[str, Mapping[str, Any]] = {}
    for path, document in documents:
        entries = document.get(name) or []
        if not isinstance(entries, list):
            raise BadKubeconfigError(f"{path}: {name}: must be a list")
        for number, entry in enumerate(entries):
            content = entry.get(_LISTS[name]) or {} if isinstance(entry, Mapping) else None
            if not isinstance(content, Mapping) or not text_of(entry, "name"):
                raise BadKubeconfigError(f"{path}: {name}[{number}]: must have name and {_LISTS[name]}")
            if entry["name"] not in merged:
                merged[entry["name"]] = _with_absolute_paths(content, path.parent.absolute())
    return merged


def _with_absolute_paths(entry: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return an entry whose paths are absolute; those in a kubeconfig are relative to its folder."""
    absolute: dict[str, Any] = {key: str(folder / path) for key, path in paths_in(entry).items()}
    plugin = entry.get("exec")
    if isinstance(plugin, Mapping) and os.sep in (command := text_of(plugin, "command") or ""):
        absolute["exec"] = {**plugin, "command": str(folder / command)}
    return {**entry, **absolute}


def _entry(
    named: str, context: str, entries: Mapping[str, Mapping[str, Any]], kind: str, name: str | None
) -> Mapping[str, Any]:
    """Return the user or cluster that a context names; a context without a user has no credentials."""
    if name is None and kind == "user":
        return {}
    if name is None:
        raise BadKubeconfigError(f"{named}: context {context!r}: names no {kind}")
    if name not in entries:
        raise BadKubeconfigError(f"{named}: context {context!r}: there is no {kind} {name!r}")
    return entries[name]


@contextmanager
def _logged_errors() -> Iterator[list[str]]:
    """Yield the messages of errors that this thread logs within the block.

    The package logs the failure of an exec plugin and goes on without credentials.
    """
    messages: list[str] = []
    this_thread = threading.get_ident()

    class _Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == this_thread:  # functions may be at work in others
                messages.append(record.getMessage())

    handler = _Collect(logging.ERROR)
    logging.getLogger().addHandler(handler)
    try:
        yield messages
    finally:
        logging.getLogger().removeHandler(handler)


def _one_line(error: object) -> str:
    """Return the text of an error as one line, without the number of a system error."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return re.sub(r"^\[Errno \d+\] ", "", " ".join(text.split()))
