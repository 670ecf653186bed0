"""Kubeconfig files, as the `kubernetes` package reads them: several are merged as kubectl does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kubernetes.client.configuration import Configuration
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from muster.cluster.http.client import Client


class BadKubeconfigError(Exception):
    """A kubeconfig cannot be used; the message is one line that begins with the files."""


@dataclass(frozen=True)
class Kubeconfig:
    """One context of one or several files."""

    paths: str
    context: str
    namespace: str
    _loader: KubeConfigLoader = field(repr=False)

    def client(self, user_agent: str = "muster") -> Client:
        """Return a client with the credentials of the context; runs the exec plugin, if there is one."""
        configuration = Configuration()
        with _one_line_errors(self.paths):
            self._loader.load_and_set(configuration)
            return Client(configuration, user_agent=user_agent)


def read_kubeconfig(paths: str, context: str = "") -> Kubeconfig:
    """Return a context of kubeconfig files."""
    with _one_line_errors(paths):
        merger = KubeConfigMerger(paths)
        if merger.config is None:
            raise FileNotFoundError("No such file")
        # The package takes the last current-context, and kubectl the first.
        current = (file.get("current-context") for file in merger.config_files.values())
        chosen = context or next(filter(None, current), None)
        loader = KubeConfigLoader(merger.config, active_context=chosen, config_base_path=None)
        found: dict[str, Any] = loader.current_context
        return Kubeconfig(paths, found["name"], found["context"].get("namespace") or "default", loader)


def client_of(kubeconfig: str, user_agent: str = "muster") -> Client:
    """Return a client of the current context of the files that a value of the variable KUBECONFIG lists."""
    return read_kubeconfig(kubeconfig).client(user_agent)


@contextmanager
def _one_line_errors(paths: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - the package raises any kind of error for an invalid kubeconfig
        raise BadKubeconfigError(f"{paths}: {' '.join(str(error).split())}") from None
