"""`Controllers`: starts and stops all simulated controllers together."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Self

from muster.cluster.http.client import Client
from muster.simulator.controllers.job.controller import JobController, JobOptions
from muster.simulator.controllers.jobset.controller import JobSetController
from muster.simulator.controllers.kubelet import KubeletController, KubeletOptions
from muster.simulator.controllers.loop import Controller, Loop
from muster.simulator.controllers.scheduler.controller import SchedulerController
from muster.simulator.controllers.trainer import TrainerController

ALL = frozenset({"trainer", "jobset", "job", "scheduler", "kubelet"})
AGENT = "muster-simulated-controllers"


class Controllers:
    """The simulated controllers named in `only` against one API server, given as URL or by its clients."""

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
        self._loop = Loop(enabled, connect)

    def start(self) -> Self:
        """List every kind, then start to reconcile."""
        self._loop.start()
        return self

    def stop(self) -> None:
        """Stop; objects stay in the API server."""
        self._loop.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()


def _controllers(kubelet: KubeletOptions, job: JobOptions) -> list[Controller]:
    return [
        TrainerController(),
        JobSetController(),
        JobController(job),
        SchedulerController(),
        KubeletController(kubelet),
    ]
