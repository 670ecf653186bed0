"""Simulated Trainer, JobSet controller, Job controller, scheduler and kubelet.

They talk to an API server over HTTP as the real controllers do. Each module names the upstream source it
follows and lists what it leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Self

from muster.cluster.http.client import Client
from muster.simulator.controllers.fixtures import node, shipped_runtime, shipped_runtimes
from muster.simulator.controllers.job.controller import JobController
from muster.simulator.controllers.jobset import JobSetController
from muster.simulator.controllers.kubelet import KubeletController, KubeletOptions
from muster.simulator.controllers.loop import Controller, Loop
from muster.simulator.controllers.scheduler.controller import SchedulerController
from muster.simulator.controllers.trainer import TrainerController

__all__ = ["Controllers", "KubeletOptions", "node", "shipped_runtime", "shipped_runtimes"]

AGENT = "muster-simulated-controllers"


class Controllers(Loop):
    """The simulated controllers against one API server, given as URL or by its clients."""

    def __init__(self, server: str | Callable[[], Client], *, kubelet: KubeletOptions | None = None) -> None:
        connect = partial(Client.for_server, server, user_agent=AGENT) if isinstance(server, str) else server
        controllers: list[Controller] = [
            TrainerController(),
            JobSetController(),
            JobController(),
            SchedulerController(),
            KubeletController(kubelet or KubeletOptions()),
        ]
        super().__init__(controllers, connect)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
