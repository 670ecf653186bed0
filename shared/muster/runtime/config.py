"""The settings of a function. The only reader of the environment."""

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
MEBIBYTE = 1024 * 1024


class BadSettingError(Exception):
    """An environment variable has a value that cannot be used."""


@dataclass(frozen=True)
class Settings:
    """How a function runs. Each is set by `MUSTER_` and its name in capitals; `kubeconfig` by `KUBECONFIG`.

    Attributes:
        log_level: from which level on log lines are written: DEBUG, INFO, WARNING, ERROR.
        retry_after_seconds: what a sender is asked to wait when an event must come again.
        body_limit_bytes: the largest body that is read. An object has at most 1.5 MiB in etcd (its
            `--max-request-bytes`), and escapes in JSON may make it several times longer.
        deadline_seconds: so long calls are made and waited for, for one event or one sweep. Below the
            delivery timeout of the triggers, else a sender gives up on an event that is still worked on.
        sweep_limit: the most objects that one sweep runs the step on; what its lists tell needs no run.
        sweep_jitter_seconds: a sweep waits up to so long, or not at all, so that not all functions
            list at the same moment.
        workers: events worked on at the same time; not below `containerConcurrency`.
        api_server: URL of an API server without credentials, as on one machine.
        kubeconfig: path of a kubeconfig file.
        cluster_name: in log lines and replies, to tell clusters apart.
        namespace: the only namespace that sweeps look at, for an installation whose roles end there; all
            namespaces where it is empty.
        traces: `otlp` sends traces by OpenTelemetry where OTEL_EXPORTER_OTLP_ENDPOINT says; needs the extra
            muster[traces].
        dead_letter_limit: the most dead letters that are kept; the oldest make room.
        dead_letter_namespace: where dead letters are kept; where it is empty, the pod's own namespace.
    """

    log_level: str = "INFO"
    retry_after_seconds: float = 1.0
    body_limit_bytes: int = 8 * MEBIBYTE
    deadline_seconds: float = 8.0
    sweep_limit: int = 1000
    sweep_jitter_seconds: float = 2.0
    workers: int = 4
    api_server: str = ""
    kubeconfig: str = ""
    cluster_name: str = ""
    namespace: str = ""
    traces: str = ""
    dead_letter_limit: int = 100
    dead_letter_namespace: str = ""


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings that the environment asks for; what it leaves out or empty keeps its default.

    Raises:
        BadSettingError: naming the variable, its value and what it should be.
    """
    given: dict[str, Any] = {}
    for setting in fields(Settings):
        variable = "KUBECONFIG" if setting.name == "kubeconfig" else f"MUSTER_{setting.name.upper()}"
        text = environment.get(variable, "")
        if text:
            given[setting.name] = _value(variable, text, type(setting.default))
    return Settings(**given)


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
    """The namespace of this pod; `muster-system` outside of one."""
    file = folder / "namespace"
    return file.read_text().strip() if file.exists() else "muster-system"


def connect(
    settings: Settings, user_agent: str = "muster", environment: Mapping[str, str] = os.environ
) -> Versioned:
    """The cluster of an URL, else of a kubeconfig, else of the pod's own service account.

    The URL comes first: only Muster's own stack sets it, while many people's shells have a KUBECONFIG.

    Raises:
        BadSettingError: none of the three is there.
    """
    # The kubernetes package takes 0.4 s to import, which planning and tests can do without.
    from muster.cluster.client import Client  # noqa: PLC0415
    from muster.cluster.versioned import Versioned  # noqa: PLC0415

    identity = {"user_agent": user_agent, "namespace": settings.namespace}
    if settings.api_server:
        return Versioned(Client.for_server(settings.api_server, **identity))
    if settings.kubeconfig:
        return Versioned(Client.from_kubeconfig(settings.kubeconfig, **identity))
    if "KUBERNETES_SERVICE_HOST" not in environment:
        raise BadSettingError("no cluster: not in a pod, and neither MUSTER_API_SERVER nor KUBECONFIG is set")
    return Versioned(Client.in_cluster(**identity))
