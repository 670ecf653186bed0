"""Run the functions on one machine, behind waitress in threads of this process.

A subscriber is the name of a function's Service, `create-workload`, or, where several functions share a
Service, that of the Service with the path: `muster/create-workload`.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from muster.replay.activity import Activity, ActivityHandler
from muster.runtime import steps
from muster.runtime.config import Settings
from muster.runtime.serve import Functions, server_of

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class WsgiServer:
    """A waitress server in a thread, which listens on a free port of this machine until `stop`."""

    def __init__(self, app: WSGIApplication, name: str, threads: int = 8) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self._server = server_of(app, threads, sockets=[listener])
        self._stopping = threading.Event()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        threading.Thread(target=self._serve, name=name, daemon=True).start()

    def stop(self) -> None:
        """Close the listening socket."""
        self._stopping.set()
        self._server.close()

    def _serve(self) -> None:
        try:
            self._server.run()
        except OSError:
            # `stop` closes the socket that waitress selects on, since waitress has no other way to stop.
            if not self._stopping.is_set():
                raise


@contextmanager
def running_functions(
    subscribers: Iterable[str],
    settings: Settings,
    listener: Callable[[Activity], None],
    kubeconfigs: Mapping[str, Path] = MappingProxyType({}),
    own_steps: Mapping[str, Path] = MappingProxyType({}),
) -> Iterator[dict[str, str]]:
    """Run functions; yield the URL of each by its subscriber.

    Args:
        subscribers: the functions.
        settings: of all functions.
        listener: called for each activity.
        kubeconfigs: of the service accounts, by Service; others use the cluster of the settings.
        own_steps: the step.py of steps that are not Muster's, by the names of their Services.

    Raises:
        BadSettingError: a kubeconfig cannot be used.
        LookupError: a service has no step.
    """
    services: dict[str, list[str]] = {}
    for subscriber in subscribers:
        services.setdefault(subscriber.partition("/")[0], []).append(subscriber)
    urls: dict[str, str] = {}
    with ExitStack() as stops:
        stops.enter_context(ActivityHandler(listener))
        for service, functions in services.items():
            files = [steps.step_file(name.rpartition("/")[2], own_steps) for name in functions]
            account = settings
            if service in kubeconfigs:
                account = replace(settings, api_server="", kubeconfig=str(kubeconfigs[service]))
            served = Functions.connected([steps.load_step(file) for file in files], account)
            server = WsgiServer(served.app, service, settings.threads)
            stops.callback(server.stop)
            urls |= {name: server.url + name.removeprefix(service) for name in functions}
        yield urls
