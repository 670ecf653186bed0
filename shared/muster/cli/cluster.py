"""Connect a command to the cluster of a kubeconfig, as kubectl does."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from muster.cli.common import BadInput, CommandError
from muster.cluster.errors import ClusterError, Forbidden
from muster.cluster.http.client import Client
from muster.cluster.kubeconfig import BadKubeconfigError, Kubeconfig, read_kubeconfig
from muster.objects.resources import NAMESPACES


@dataclass(frozen=True)
class KubeconfigOptions:
    """The values of --kubeconfig and --context; None and "" where they were not given."""

    kubeconfig: Path | None = None
    context: str = ""


@dataclass(frozen=True)
class Connection:
    """A cluster that a command works on, and the context of the kubeconfig that names it."""

    client: Client
    kubeconfig: Kubeconfig

    @property
    def namespace(self) -> str:
        """The namespace of the context."""
        return self.kubeconfig.namespace

    def place(self, namespace: str, *, everywhere: bool) -> str:
        """Return the namespace that -n and -A name, "" for all; by default that of the context.

        Raises:
            CommandError: the namespace does not exist.
        """
        place = "" if everywhere else namespace or self.namespace
        if place:
            self.require_namespace(place)
        return place

    def require_namespace(self, name: str) -> None:
        """Raise CommandError if a namespace does not exist; one that may not be read may exist."""
        with suppress(Forbidden):
            if self.client.get(NAMESPACES, name) is None:
                raise CommandError(f"{self.client.url}: namespace {name!r} does not exist; -n names another")


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --kubeconfig and --context to a command, which gets them as the argument `options`."""

    @click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        help="Kubeconfig of the cluster; default: the files in $KUBECONFIG, else ~/.kube/config.",
    )
    @click.option("--context", default="", help="Context of the kubeconfig; default: its current-context.")
    @functools.wraps(command)
    def with_options(*arguments: Any, kubeconfig: Path | None, context: str, **others: Any) -> Any:
        return command(*arguments, options=KubeconfigOptions(kubeconfig, context), **others)

    return with_options


def namespace_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option -n with a help text; the shell completes the cluster's namespaces."""
    return click.option("-n", "--namespace", default="", help=text, shell_complete=complete_namespaces)


def namespace_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add -n and -A to a command, which gets them as the arguments `namespace` and `everywhere`."""

    @namespace_option("Only this namespace; default: the context's.")
    @click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")
    @functools.wraps(command)
    def with_options(*arguments: Any, namespace: str, everywhere: bool, **others: Any) -> Any:
        if everywhere and namespace:
            raise BadInput("-A: cannot be used with -n")
        return command(*arguments, namespace=namespace, everywhere=everywhere, **others)

    return with_options


def complete_namespaces(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the namespaces of the cluster that begin with a text; none if they cannot be listed."""
    options = KubeconfigOptions(ctx.params.get("kubeconfig"), ctx.params.get("context") or "")
    try:
        with connected(options, "complete") as cluster:
            names = [body["metadata"]["name"] for body in cluster.client.list(NAMESPACES)]
    except CommandError:
        return []
    return [name for name in names if name.startswith(incomplete)]


@contextmanager
def connected(options: KubeconfigOptions, command: str) -> Iterator[Connection]:
    """Yield a connection to the cluster; a ClusterError within the block becomes a one-line message.

    Raises:
        BadInput: the kubeconfig does not exist or is invalid.
        CommandError: the API server refused a request, or did not answer.
    """
    paths = options.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    try:
        kubeconfig = read_kubeconfig(str(paths), options.context)
        client = kubeconfig.client(f"muster-{command}")
    except BadKubeconfigError as error:
        hint = "" if options.kubeconfig else "; set --kubeconfig or $KUBECONFIG"
        raise BadInput(f"{error}{hint}") from None
    with cluster_errors(client.url):
        client.served_versions("apps")  # raises ClusterError if the API server does not answer
        yield Connection(client, kubeconfig)


@contextmanager
def cluster_errors(url: str) -> Iterator[None]:
    """Turn a ClusterError within the block into a one-line message, a CommandError."""
    try:
        yield
    except ClusterError as error:
        raise CommandError(f"{url}: {type(error).__name__}: {error.message}") from None
