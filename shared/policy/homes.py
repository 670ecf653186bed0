"""Where a policy may stand, and which one rules: the first home that has one, even if it is broken there.

A broken policy never falls through to a lower home: whoever wrote it did not ask for the default.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.policy import schema
from shared.policy.groups import GivenUp
from shared.policy.model import Home, HomeKind
from shared.policy.reasons import Reason
from shared.policy.schema import InvalidPolicyError, WorkloadPolicy

ANNOTATION = "muster.dev/pod-group-policy"
CONFIG_MAP = "muster-policy"
CONFIG_MAP_KEY = "policy"


@dataclass(frozen=True)
class Ruling:
    """The policy that rules, and where it stands.

    Attributes:
        where: the home in words.
        workload: groups of scheduling.k8s.io; None where another scheduler groups the pods.
        other: that scheduler, as the policy names it; "" where there is none.
    """

    where: str
    workload: WorkloadPolicy | None
    other: str = ""

    @property
    def holds(self) -> bool:
        """Whether pods stay gated where their groups cannot be had, instead of running without a gang."""
        return self.workload is not None and self.workload.on_failure == "Hold"


DEFAULT = Ruling("the built-in default", WorkloadPolicy())


def rule(homes: tuple[Home, ...]) -> Ruling | GivenUp:
    """The policy of the first home.

    Args:
        homes: those that exist, highest first.
    """
    if not homes:
        return DEFAULT
    home = homes[0]
    try:
        policy = schema.parse(home.content) if isinstance(home.content, str) else schema.check(home.content)
    except InvalidPolicyError as error:
        return GivenUp(Reason.INVALID_POLICY, f"{home.where}: {error}")
    if policy.workload is not None:
        return Ruling(home.where, policy.workload)
    other = next(
        name for name in ("kai_scheduler", "coscheduling", "volcano") if getattr(policy, name) is not None
    )
    spelled = "kaiScheduler" if other == "kai_scheduler" else other
    if home.kind in {HomeKind.RUNTIME, HomeKind.RUNTIME_SPEC}:
        return Ruling(home.where, None, spelled)
    queue = policy.kai_scheduler.queue if policy.kai_scheduler else None
    wanted = f"{{kaiScheduler: {{queue: {queue}}}}}" if queue else f"{{{spelled}: {{}}}}"
    return GivenUp(
        Reason.INVALID_POLICY,
        f"{home.where}: {spelled}: only a runtime can hand pods to another scheduler, before they exist: "
        f"kubectl annotate clustertrainingruntime NAME '{ANNOTATION}={wanted}'",
    )
