"""Runs the containers of Knative's pods as processes.

``python -m tests.cluster.knative.kubelet FOLDER PROXY``, started for one cluster, makes the processes follow
the pods on the node ``knative``, which KWOK reports as running: those of Knative's own Deployments, and those
that its controllers make for sources. Each process has the environment and the service account of its
container. SIGTERM ends it and them all.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cluster import controllers, modules
from tests.cluster.api import KubernetesApi
from tests.cluster.credentials import Credentials
from tests.cluster.knative.release import NODE
from tests.cluster.processes import ComponentProcess, free_ports, start

Object = dict[str, Any]
STATE = "pods.json"
"""The file in the cluster's folder with process id and start of each pod, by ``<namespace>/<name>``."""

_PERIOD = 0.2
_RESTART_AFTER = 1.0
_IMAGE = "ko://"
"""Images in the modules' manifests are import paths of main packages."""

_SERVICES = {
    "knative.dev/eventing/cmd/broker/ingress": ("broker-ingress.knative-eventing.svc.cluster.local",),
    "knative.dev/eventing/cmd/broker/filter": ("broker-filter.knative-eventing.svc.cluster.local",),
    "knative.dev/eventing/cmd/in_memory/channel_dispatcher": (
        "imc-dispatcher.knative-eventing.svc.cluster.local",
        "*-kn-channel.*.svc.cluster.local:80",
    ),
}
"""Hosts that reach the HTTP port of a component, by its main package."""

_WEBHOOKS = {
    "knative.dev/eventing/cmd/webhook": "eventing-webhook.knative-eventing",
    "knative.dev/eventing/cmd/in_memory/channel_controller": "inmemorychannel-webhook.knative-eventing",
    "knative.dev/serving/cmd/webhook": "webhook.knative-serving",
}
"""The Service of a component's webhook, as ``<name>.<namespace>``."""

_WITHOUT_LEADER_ELECTION = (
    "cmd/controller",
    "cmd/webhook",
    "cmd/mtchannel_broker",
    "cmd/mtping",
    "cmd/in_memory/channel_controller",
    "cmd/in_memory/channel_dispatcher",
)
"""Components that elect a leader. Each has one replica; after a restart it would wait for its own lease."""


@dataclass
class Running:
    """A started container; `restart_at` is monotonic time, 0 while it runs."""

    process: ComponentProcess
    started: float = field(default_factory=time.time)
    restart_at: float = 0.0


class Kubelet:
    """The processes of the pods of one node."""

    def __init__(self, folder: Path, proxy: str) -> None:
        self._folder = folder
        self._proxy = proxy
        self._api = KubernetesApi.from_kubeconfig(folder / "admin.kubeconfig")
        self._credentials = Credentials(folder, folder / "tls.crt", folder / "tls.key", {})
        self._running: dict[str, Running] = {}
        self._stopping: list[threading.Thread] = []

    def run(self, ended: threading.Event) -> None:
        """Let the processes follow the pods until the event is set; then kill them all."""
        while not ended.wait(_PERIOD):
            with contextlib.suppress(OSError, AssertionError):  # the API server is being restarted
                self._follow(self._pods())
        for running in self._running.values():
            running.process.signal(signal.SIGKILL)

    def _pods(self) -> dict[str, Object]:
        query = {"fieldSelector": f"spec.nodeName={NODE}", "resourceVersion": "0"}
        pods = self._api.must("GET", "/api/v1/pods", query=query)["items"]
        return {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": pod
            for pod in pods
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        }

    def _follow(self, pods: dict[str, Object]) -> None:
        before = self._state()
        for name in self._running.keys() - pods.keys():
            # Within the grace period of a pod an adapter finishes what it is sending.
            process = self._running.pop(name).process
            stopping = threading.Thread(target=process.stop, args=(5.0,), daemon=True)
            stopping.start()
        for name, pod in pods.items():
            running = self._running.get(name)
            if running is None:
                self._running[name] = Running(self._start(pod))
            elif not running.restart_at and not running.process.alive():
                running.restart_at = time.monotonic() + _RESTART_AFTER
            elif running.restart_at and time.monotonic() > running.restart_at:
                self._running[name] = Running(self._start(pod))
        if (now := self._state()) != before:
            draft = self._folder / f"{STATE}.draft"
            draft.write_text(json.dumps(now, indent=1))
            draft.replace(self._folder / STATE)

    def _state(self) -> dict[str, dict[str, float]]:
        return {
            name: {"pid": running.process.pid, "started": running.started}
            for name, running in self._running.items()
        }

    def _start(self, pod: Object) -> ComponentProcess:
        metadata, (container,) = pod["metadata"], pod["spec"]["containers"]
        package = container["image"].removeprefix(_IMAGE)
        account = pod["spec"].get("serviceAccountName", "default")
        token = controllers.service_account_token(self._api, metadata["namespace"], account)
        user = f"{metadata['namespace']}-{account}"
        http, https, webhook, profiling = (str(port) for port in free_ports(4))
        environment = {
            **{variable["name"]: _value(variable, pod) for variable in container.get("env", [])},
            **dict.fromkeys(("INGRESS_PORT", "FILTER_PORT", "DISPATCHER_PORT"), http),
            **dict.fromkeys(("INGRESS_PORT_HTTPS", "FILTER_PORT_HTTPS", "DISPATCHER_PORT_HTTPS"), https),
            "WEBHOOK_PORT": webhook,
            "PROFILING_PORT": profiling,
            "KUBECONFIG": str(self._credentials.kubeconfig(user, self._api.server, token)),
            "HTTP_PROXY": self._proxy,
            "HTTPS_PROXY": self._proxy,
        }
        flags = ["--disable-ha"] if package.endswith(_WITHOUT_LEADER_ELECTION) else []
        command = [str(_binary(package)), *flags]
        # In the session of this process, so that a signal to it reaches them all, also if it is killed.
        process = start(metadata["name"], command, self._folder, environment, own_session=False)
        self._route(package, http, webhook)
        return process

    def _route(self, package: str, http: str, webhook: str) -> None:
        """Route the Services of a component to the ports of its process."""
        routes = dict.fromkeys(_SERVICES.get(package, ()), f"127.0.0.1:{http}")
        if package.endswith("/ingress"):
            # Requests to `services/proxy`, whose Host the API server keeps, so that it is its own. The only
            # Service that Muster reaches in this way is the broker's ingress.
            routes[self._api.server.removeprefix("https://")] = f"127.0.0.1:{http}"
        if service := _WEBHOOKS.get(package):
            name, namespace = service.split(".")
            path = f"/api/v1/namespaces/{namespace}/services/{name}"
            cluster_ip = self._api.must("GET", path)["spec"]["clusterIP"]
            address = f"127.0.0.1:{webhook}"
            routes |= {f"{service}.svc:443": address, f"{cluster_ip}:443": address}
        if routes:
            KubernetesApi(self._proxy).must("PUT", "/", routes)


def _value(variable: Object, pod: Object) -> str:
    """Return the value of a container's variable; `unused` for images of components that are left out."""
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    path = variable["valueFrom"].get("fieldRef", {}).get("fieldPath", "")
    fields = {"metadata.name": pod["metadata"]["name"], "metadata.namespace": pod["metadata"]["namespace"]}
    return str(fields.get(path, "unused"))


def _binary(package: str) -> Path:
    """Return the binary of a main package, which was built before."""
    binaries = modules.cache_folder() / "bin"
    if package == modules.SERVING_WEBHOOK.package:
        return binaries / modules.SERVING_WEBHOOK.name
    return binaries / modules.EVENTING.name / package.rsplit("/", 1)[1]


def main(folder: str, proxy: str) -> None:
    """Run until SIGTERM."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    Kubelet(Path(folder), proxy).run(ended)


if __name__ == "__main__":
    main(*sys.argv[1:])
