"""The settings of a function. The only module that reads the environment."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.cluster.versioned import Versioned

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class BadSettingError(Exception):
    """An environment variable has a value that cannot be used."""


@dataclass(frozen=True)
class Settings:
    """The settings of a function: variables `MUSTER_<NAME>`, and `KUBECONFIG` for `kubeconfig`."""

    log_level: str = "INFO"
    """The lowest level that is logged: DEBUG, INFO, WARNING, ERROR."""
    cluster_name: str = ""
    """A name of the cluster for log lines and replies."""
    namespace: str = ""
    """The only namespace that sweeps look at, if roles are limited to it; empty for all."""
    policy_namespace: str = ""
    """That of the administrator's ConfigMap `muster-policy`; if empty, the pod's own."""
    api_server: str = ""
    """URL of an API server without credentials, as on one machine."""
    kubeconfig: str = ""
    traces: str = ""
    """`otlp` sends traces to OTEL_EXPORTER_OTLP_ENDPOINT; needs the extra muster[traces]."""
    threads: int = 10
    """Requests answered at the same time; above `containerConcurrency`, which leaves some to probes."""
    deadline_seconds: float = 8.0
    """Calls are made for one event or sweep so long; less than the triggers wait for an answer."""
    dead_letter_limit: int = 100
    """The most dead letters that are kept; the oldest are deleted first."""
    dead_letter_namespace: str = ""
    """If empty, the pod's own."""


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of the environment; missing and empty variables keep their defaults."""
    values: dict[str, Any] = {}
    for name in (field.name for field in fields(Settings)):
        variable = "KUBECONFIG" if name == "kubeconfig" else f"MUSTER_{name.upper()}"
        if text := environment.get(variable):
            values[name] = _value(variable, text, type(getattr(Settings, name)))
    return Settings(**values)


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
    if not 0 < value < float("inf"):
        raise BadSettingError(f"{variable}={text}: not a {'whole ' if kind is int else ''}number above 0")
    return value


def own_namespace(folder: Path = SERVICE_ACCOUNT) -> str:
    """Return the namespace of this pod; `muster-system` outside of one."""
    file = folder / "namespace"
    return file.read_text().strip() if file.exists() else "muster-system"


def connect(
    settings: Settings, user_agent: str = "muster", environment: Mapping[str, str] = os.environ
) -> Versioned:
    """Return the cluster by URL, else by kubeconfig, else by the pod's service account."""
    # The kubernetes package takes 0.4 s to import, which planning and tests do not need.
    from muster.cluster.http.client import Client  # noqa: PLC0415
    from muster.cluster.kubeconfig import BadKubeconfigError, client_of  # noqa: PLC0415
    from muster.cluster.versioned import Versioned  # noqa: PLC0415

    if settings.api_server:
        client = Client.for_server(settings.api_server, user_agent=user_agent)
    elif settings.kubeconfig:
        try:
            client = client_of(settings.kubeconfig, user_agent=user_agent)
        except BadKubeconfigError as error:
            raise BadSettingError(f"KUBECONFIG: {error}") from None
    elif "KUBERNETES_SERVICE_HOST" in environment:
        client = Client.in_cluster(user_agent=user_agent)
    else:
        raise BadSettingError("no cluster: not in a pod, and neither MUSTER_API_SERVER nor KUBECONFIG is set")
    return Versioned(client, settings.policy_namespace or own_namespace())
