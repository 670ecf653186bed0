"""Runs Muster's Knative Services as processes, in the place of Serving's controllers.

``python -m tests.cluster.knative.serving FOLDER PROXY``, for `make cluster KNATIVE=1`: each Knative Service
whose image is one of Muster's functions gets a process with its environment and service account, an address,
and the condition Ready. A change of its spec starts it anew. SIGTERM ends them all. The stories start their
functions by themselves.
"""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tests.cluster import controllers
from tests.cluster.api import KubernetesApi
from tests.cluster.credentials import Credentials
from tests.cluster.knative.stack import Knative
from tests.cluster.processes import ComponentProcess, free_ports, start

Object = dict[str, Any]
_PERIOD = 0.5


class FunctionRunner:
    """The processes of a cluster's Knative Services."""

    def __init__(self, folder: Path, proxy: str) -> None:
        self._folder = folder
        self._knative = Knative(proxy, folder)
        self._api = KubernetesApi.from_kubeconfig(folder / "admin.kubeconfig")
        self._credentials = Credentials(folder, folder / "tls.crt", folder / "tls.key", {})
        self._running: dict[tuple[str, str, int], ComponentProcess] = {}

    def run(self, ended: threading.Event) -> None:
        """Let the processes follow the Services until the event is set; then kill them all."""
        while not ended.wait(_PERIOD):
            with contextlib.suppress(OSError, AssertionError):  # the API server is being restarted
                self._follow()
        for process in self._running.values():
            process.signal(signal.SIGKILL)

    def _follow(self) -> None:
        services = {
            (obj["metadata"]["namespace"], obj["metadata"]["name"], obj["metadata"]["generation"]): obj
            for obj in self._api.must("GET", "/apis/serving.knative.dev/v1/services")["items"]
        }
        for key in self._running.keys() - services.keys():
            self._running.pop(key).stop(grace=2.0)
        for key, service in services.items():
            code = code_of(service)
            if code and (key not in self._running or not self._running[key].alive()):
                self._running[key] = self._start(service, code)

    def _start(self, service: Object, code: list[str]) -> ComponentProcess:
        namespace, name = service["metadata"]["namespace"], service["metadata"]["name"]
        spec = service["spec"]["template"]["spec"]
        account = spec.get("serviceAccountName", "default")
        token = controllers.service_account_token(self._api, namespace, account)
        port = free_ports(1)[0]
        environment = {
            "KUBECONFIG": str(self._credentials.kubeconfig(f"{namespace}-{name}", self._api.server, token)),
            "MUSTER_API_SERVER": "",
            "MUSTER_DEAD_LETTER_NAMESPACE": namespace,
            **{
                variable["name"]: variable["value"]
                for variable in spec["containers"][0].get("env", [])
                if "value" in variable
            },
        }
        command = [sys.executable, "-m", "muster.runtime.serve", *code, "--port", str(port)]
        process = start(f"{namespace}-{name}", command, self._folder, environment, own_session=False)
        self._knative.serve(self._api, namespace, name, f"127.0.0.1:{port}")
        return process


def code_of(service: Object) -> list[str]:
    """Return what `muster.runtime.serve` is given for a Service; nothing if its image is not Muster's."""
    (container,) = service["spec"]["template"]["spec"]["containers"]
    image = re.sub(r"[:@].*", "", container["image"].rsplit("/", 1)[-1])
    return list(container["args"]) if image == "muster" else []


def main(folder: str, proxy: str) -> None:
    """Run until SIGTERM."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    FunctionRunner(Path(folder), proxy).run(ended)


if __name__ == "__main__":
    main(*sys.argv[1:])
