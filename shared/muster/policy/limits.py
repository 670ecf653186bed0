"""The limits on what one owner may cost, each with its default and its reason.

Whoever may create Jobs in a namespace chooses these numbers, and one function serves all namespaces. A
refusal names the limit by `setting`, so that an administrator who needs more knows what to set.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of a function: variables `MUSTER_LIMIT_<NAME>`.

    Attributes:
        replicated_jobs: pod templates of one owner. Each is compared with those it waits for. A Workload has
            at most 8 templates in a list, so more pod templates only share groups; 128 are planned in 30 ms.
        pod_groups: PodGroups of one owner. 512 are 4,096 pods in blocks of 8; a JobSet of 519 bytes could
            otherwise ask for 10,000, which take a minute to create.
        pod_group_members: pod templates of all PodGroups of one owner, counted once for each PodGroup: what a
            plan goes through. 4 for each PodGroup at the limit.
        writes: writes for one event; the rest follows at its next delivery. All writes of 512 PodGroups fit
            into the six deliveries of a trigger (`retry: 5` in eventing/triggers), and one delivery takes
            about half a second.
        page_bytes: bytes to aim at in one page of a list; a page of twice as many is read again in smaller
            parts. 500 pods have 4 MB; 500 objects of the most bytes that etcd stores would have 750 MB.
        kept_bytes: bytes that a sweep keeps of one object; larger ones are read again one by one. Muster's
            view of a Job has about 1 KB.
    """

    replicated_jobs: int = 128
    pod_groups: int = 512
    pod_group_members: int = 2048
    writes: int = 100
    page_bytes: int = 4 * 1024 * 1024
    kept_bytes: int = 32 * 1024


DEFAULT_LIMITS = Limits()
"""The limits without any setting."""


def setting(name: str) -> str:
    """The environment variable of a limit: `MUSTER_LIMIT_POD_GROUPS`."""
    return f"MUSTER_LIMIT_{name.upper()}"
