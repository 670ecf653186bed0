"""Simulated Trainer, JobSet controller, Job controller, scheduler and kubelet.

They talk to an API server over HTTP as the real controllers do. Each module names the upstream source it
follows and lists what it leaves out.
"""

from muster.simulator.controllers.fixtures import node, shipped_runtime, shipped_runtimes
from muster.simulator.controllers.job.controller import JobOptions
from muster.simulator.controllers.kubelet import KubeletOptions
from muster.simulator.controllers.manager import ALL, Controllers

__all__ = [
    "ALL",
    "Controllers",
    "JobOptions",
    "KubeletOptions",
    "node",
    "shipped_runtime",
    "shipped_runtimes",
]
