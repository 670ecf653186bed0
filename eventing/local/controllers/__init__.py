"""Simulated Trainer, JobSet controller, Job controller, scheduler and kubelet for one machine.

They drive an API server over HTTP as the real ones would, so that the functions under test cannot tell the
difference. What they do follows the upstream sources named in each module; what they leave out is said there.
"""

from eventing.local.controllers.fixtures import node, shipped_runtime, shipped_runtimes
from eventing.local.controllers.job import JobOptions
from eventing.local.controllers.kubelet import KubeletOptions
from eventing.local.controllers.manager import ALL, Controllers

__all__ = [
    "ALL",
    "Controllers",
    "JobOptions",
    "KubeletOptions",
    "node",
    "shipped_runtime",
    "shipped_runtimes",
]
