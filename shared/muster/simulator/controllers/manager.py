"""`Controllers`: starts and stops all simulated controllers together."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from types import TracebackType
from typing import Self

from muster.cluster.http.client import Client
from muster.simulator.controllers.framework.cache import Cache
from muster.simulator.controllers.framework.execute import Executor
from muster.simulator.controllers.framework.informers import Informers
from muster.simulator.controllers.framework.worker import Controller, Worker
from muster.simulator.controllers.job.controller import JobController, JobOptions
from muster.simulator.controllers.jobset.controller import JobSetController
from muster.simulator.controllers.kubelet import KubeletController, KubeletOptions
from muster.simulator.controllers.scheduler.controller import SchedulerController
from muster.simulator.controllers.trainer.controller import TrainerController

ALL = frozenset({"trainer", "jobset", "job", "scheduler", "kubelet"})
AGENT = "muster-simulated-controllers"


class Controllers:
    """Trainer, JobSet controller, Job controller, scheduler and kubelet against one API server.

    Args:
        server: the URL of a local API server, or a function that creates a client.
        kubelet: the delays with which pods run, complete and are deleted.
        job: the delays of the Job controller.
        only: the controllers to run, of `trainer`, `jobset`, `job`, `scheduler`, `kubelet`.

    Raises:
        ValueError: `only` contains an unknown name.
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
        every = _controllers(kubelet or KubeletOptions(), job or JobOptions())
        enabled = [controller for controller in every if controller.name in only]
        cache = Cache()
        self._worker = Worker(enabled, cache, Executor(connect(), cache))
        kinds = dict.fromkeys(kind for controller in enabled for kind in controller.watches)
        self._informers = Informers(connect, cache, kinds, self._worker.changed)

    def start(self) -> Self:
        """Fill the cache and start the worker."""
        self._informers.start()
        self._worker.start()
        return self

    def stop(self) -> None:
        """Stop; objects stay in the API server."""
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
