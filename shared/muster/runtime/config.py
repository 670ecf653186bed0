"""The settings of a function. The only module that reads the environment."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.cluster.http.client import Client
    from muster.cluster.versioned import Versioned

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MEBIBYTE = 1024 * 1024


class BadSettingError(Exception):
    """An environment variable has a value that cannot be used."""


SPARE_THREADS = 32
"""Threads for requests that are parsed, refused, or no events. Where all others belong to events that wait,
those of a namespace without any would be refused before anybody knows of which they are."""


@dataclass(frozen=True)
class Settings:
    """The settings of a function: variables `MUSTER_<NAME>`, and `KUBECONFIG` for `kubeconfig`.

    Attributes:
        log_level: the lowest level that is logged: DEBUG, INFO, WARNING, ERROR.
        retry_after_seconds: the Retry-After of an event that must be delivered again.
        body_limit_bytes: the largest body that is read. etcd stores at most 1.5 MiB (`--max-request-bytes`),
            the API server takes at most 3 MiB of JSON for that (`MaxRequestBodyBytes`), and adds status and
            managedFields. The event of a larger object is refused; the sweep covers the object.
        body_limit_values: the most JSON values in a body. Each takes up to 300 bytes of memory, so a body of
            4 MiB of `{}` would take 150 MiB; an object of 1.5 MiB in environment variables has 60,000.
        body_seconds: how long a request may take to arrive, and a connection may stay without a request. A
            broker sends an event at once.
        bodies_limit_bytes: memory for the bodies of all requests that arrive or wait at the same time; the
            first 64 KiB of each do not count, so that large bodies cannot keep out usual ones. There are at
            most as many bodies as `connection_limit`, `threads` and `queue_limit` together.
        connection_limit: the most connections that wait for a request or the rest of one. With a request's
            beginning each takes about 64 KiB with waitress, and up to 220 KiB with func's server. At the
            limit the oldest of them is closed for a new one. Connections whose request is in work, or waits
            for a thread, do not count, nor do those that clients have closed.
        header_limit: the most header fields of a request. The servers and the app keep several copies of
            each: 490 requests of 3,000 fields would take 400 MiB. An event has some 30 with those of proxies.
        attribute_limit: the most characters of a CloudEvents attribute. The longest that a source sends is a
            subject with a namespace and a name, 400; a broker's knativeerrordata has 1,368.
        deadline_seconds: how long calls are made and awaited for one event or one sweep. Below the delivery
            timeout of the triggers, else a broker gives up on an event that is still in work.
        sweep_limit: the most objects that one sweep runs the step on; objects that are right by the lists do
            not count.
        sweep_jitter_seconds: the longest random delay of a sweep, so that not all functions list at the same
            moment; 0 for none.
        workers: events of one namespace in work at the same time; one more works for other namespaces. They
            mostly wait for the API server: with calls of 10 ms twelve take a whole core.
        most_in_work: events of all namespaces in work at the same time; those beyond `workers` and one more
            are of namespaces that had an event before. With calls of 100 ms thirteen workers handle 16 events
            of eight calls a second, too few for eleven namespaces that send four each.
        waiting: events that wait for a worker, all of one namespace if others have none; `threads` must not
            be below `containerConcurrency`. With those in work these are more than the 100 events that one
            trigger sends at once. Together they keep at most `bodies_limit_bytes` in memory.
        api_server: URL of an API server without credentials, as on one machine.
        kubeconfig: path of a kubeconfig file.
        cluster_name: a name of the cluster for log lines and replies.
        namespace: the only namespace that sweeps look at, if roles are limited to it; empty for all.
        policy_namespace: the namespace of the administrator's ConfigMap `muster-policy`; if empty, the pod's
            own.
        traces: `otlp` sends OpenTelemetry traces to OTEL_EXPORTER_OTLP_ENDPOINT; needs the extra
            muster[traces].
        dead_letter_limit: the most dead letters that are kept; the oldest are deleted first.
        dead_letter_limit_bytes: the largest ConfigMap of a dead letter, as it is sent to the API server. Of a
            larger event only the attributes are kept; the sweep covers its object.
        dead_letter_namespace: the namespace of dead letters; if empty, the pod's own.
    """

    log_level: str = "INFO"
    retry_after_seconds: float = 1.0
    body_limit_bytes: int = 4 * MEBIBYTE
    body_limit_values: int = 100_000
    body_seconds: float = 5.0
    bodies_limit_bytes: int = 16 * MEBIBYTE
    connection_limit: int = 500
    header_limit: int = 64
    attribute_limit: int = 2048
    deadline_seconds: float = 8.0
    sweep_limit: int = 1000
    sweep_jitter_seconds: float = 2.0
    workers: int = 12
    most_in_work: int = 37
    waiting: int = 115
    api_server: str = ""
    kubeconfig: str = ""
    cluster_name: str = ""
    namespace: str = ""
    policy_namespace: str = ""
    traces: str = ""
    dead_letter_limit: int = 100
    dead_letter_limit_bytes: int = 64 * 1024
    dead_letter_namespace: str = ""

    @property
    def in_work(self) -> int:
        """The most events in work: `most_in_work`, or `workers` and one more if those are more."""
        return max(self.workers + 1, self.most_in_work)

    @property
    def threads(self) -> int:
        """Threads of the server: for events in work, those that wait, and SPARE_THREADS."""
        return self.in_work + self.waiting + SPARE_THREADS

    @property
    def queue_limit(self) -> int:
        """The most requests that wait for a thread of the server; further ones are answered with 503.

        Each keeps a connection and up to 64 KiB of its body that `bodies_limit_bytes` does not count. None
        waits behind a queue-proxy, which sends no more than `containerConcurrency` at once.
        """
        return min(self.threads, 160)


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of the environment; missing and empty variables keep their defaults.

    Raises:
        BadSettingError: a value cannot be used; the message has the variable, its value and valid values.
    """
    names = {entry.name: f"MUSTER_{entry.name.upper()}" for entry in fields(Settings)}
    values = _values(Settings(), names | {"kubeconfig": "KUBECONFIG"}, environment)
    return Settings(**values)


def _values(defaults: object, variables: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of the variables that are set, by field name, each of the type of its default."""
    return {
        name: _value(variable, environment[variable], type(getattr(defaults, name)))
        for name, variable in variables.items()
        if environment.get(variable)
    }


def _value(variable: str, text: str, kind: type[Any]) -> Any:
    if variable == "MUSTER_LOG_LEVEL":
        if text.upper() not in logging.getLevelNamesMapping():
            raise BadSettingError(f"{variable}={text}: not DEBUG, INFO, WARNING or ERROR")
        return text.upper()
    if kind is str:
        return text
    try:
        value = kind(text)
    except ValueError:
        value = -1
    switched_off = value == 0 and variable == "MUSTER_SWEEP_JITTER_SECONDS"
    if not (0 < value < float("inf") or switched_off):
        raise BadSettingError(f"{variable}={text}: not a {'whole ' if kind is int else ''}number above 0")
    return value


def own_namespace(folder: Path = SERVICE_ACCOUNT) -> str:
    """Return the namespace of this pod; `muster-system` outside of one."""
    file = folder / "namespace"
    return file.read_text().strip() if file.exists() else "muster-system"


def connect(
    settings: Settings, user_agent: str = "muster", environment: Mapping[str, str] = os.environ
) -> Versioned:
    """Return the cluster by URL, else by kubeconfig, else by the pod's service account.

    The URL comes first: only the local stack sets it, while many shells have a KUBECONFIG.

    Raises:
        BadSettingError: none of the three is available, or the kubeconfig cannot be used.
    """
    # The kubernetes package takes 0.4 s to import, which planning and tests do not need.
    from muster.cluster.http.client import Client  # noqa: PLC0415
    from muster.cluster.versioned import Versioned  # noqa: PLC0415

    options = {
        "user_agent": user_agent,
        "namespace": settings.namespace,
    }
    policies = settings.policy_namespace or own_namespace()
    if settings.api_server:
        return Versioned(Client.for_server(settings.api_server, **options), policies)
    if settings.kubeconfig:
        return Versioned(_client_of(settings.kubeconfig, options), policies)
    if "KUBERNETES_SERVICE_HOST" not in environment:
        raise BadSettingError("no cluster: not in a pod, and neither MUSTER_API_SERVER nor KUBECONFIG is set")
    return Versioned(Client.in_cluster(**options), policies)


def _client_of(kubeconfig: str, options: Mapping[str, Any]) -> Client:
    """Return a client of the current context of a kubeconfig.

    Raises:
        BadSettingError: it cannot be used.
    """
    from muster.cluster.kubeconfig import BadKubeconfigError, client_of  # noqa: PLC0415 - pods have none

    try:
        return client_of(kubeconfig, **options)
    except BadKubeconfigError as error:
        raise BadSettingError(f"KUBECONFIG: {error}") from None
