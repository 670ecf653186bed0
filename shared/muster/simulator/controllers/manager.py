"""The simulated controllers as one thing that is started and stopped."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from types import TracebackType
from typing import Self

from muster.cluster.client import Client
from muster.simulator.controllers.execute import Executor
from muster.simulator.controllers.informers import Informers
from muster.simulator.controllers.job import JobController, JobOptions
from muster.simulator.controllers.jobset import JobSetController
from muster.simulator.controllers.kubelet import KubeletController, KubeletOptions
from muster.simulator.controllers.loop import Controller, Worker
from muster.simulator.controllers.scheduler import SchedulerController
from muster.simulator.controllers.store import Store
from muster.simulator.controllers.trainer import TrainerController

ALL = frozenset({"trainer", "jobset", "job", "scheduler", "kubelet"})
AGENT = "muster-simulated-controllers"


class Controllers:
    """Trainer, JobSet controller, Job controller, scheduler and kubelet against one API server.

    Args:
        server: the URL of an API server on this machine, or a function that makes a client.
        kubelet: how fast pods run, complete and go.
        job: how fast failed pods are replaced and changes of pods are noticed.
        only: the controllers to run, of `trainer`, `jobset`, `job`, `scheduler`, `kubelet`.

    Raises:
        ValueError: `only` names something else.
    """

    def __init__(
        self,
        server: str | Callable[[], Client],
        *,
        kubelet: KubeletOptions | None = None,
        job: JobOptions | None = None,
        only: Collection[str] = ALL,
    ) -> None:
        if unknown := set(only) - ALL:
            raise ValueError(f"no such controllers: {', '.join(sorted(unknown))}")
        connect = partial(Client.for_server, server, user_agent=AGENT) if isinstance(server, str) else server
        known = _controllers(kubelet or KubeletOptions(), job or JobOptions())
        chosen = [controller for controller in known if controller.name in only]
        store = Store()
        self._worker = Worker(chosen, store, Executor(connect(), store))
        kinds = dict.fromkeys(kind for controller in chosen for kind in controller.watches)
        self._informers = Informers(connect, store, kinds, self._worker.changed)

    def start(self) -> Self:
        """Fill the cache and begin.

        Raises:
            Unavailable: the API server does not answer.
        """
        self._informers.start()
        self._worker.start()
        return self

    def stop(self) -> None:
        """End; objects stay as they are."""
        self._informers.stop()
        self._worker.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _controllers(kubelet: KubeletOptions, job: JobOptions) -> list[Controller]:
    return [
        TrainerController(),
        JobSetController(),
        JobController(job),
        SchedulerController(),
        KubeletController(kubelet),
    ]
