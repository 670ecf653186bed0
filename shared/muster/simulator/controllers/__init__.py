"""Simulated Trainer, JobSet controller, Job controller, scheduler and kubelet for one machine.

They drive an API server over HTTP as the real ones would, so that the functions under test cannot tell the
difference. What they do follows the upstream sources named in each module; what they leave out is said there.
"""

from muster.simulator.controllers.fixtures import node, shipped_runtime, shipped_runtimes
from muster.simulator.controllers.job import JobOptions
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
