"""The limits on what a tenant can write into a policy, and on what one owner may cost, each with its reason.

Whoever may create Jobs in a namespace chooses these sizes, and one function serves all namespaces. A refusal
names the limit; those of `Limits` are settings, so that an administrator who needs more knows what to set.
"""

from __future__ import annotations

from dataclasses import dataclass

POLICY_BYTES = 16 * 1024
"""The longest policy, in bytes of UTF-8. The shipped examples have up to 1 KiB; 64 groups with a topology, a
disruption mode and a preemption policy each have 13 KiB. Reading 16 KiB takes about 50 ms."""

STORED_POLICY_BYTES = 4 * POLICY_BYTES
"""The longest policy in the annotation of a Workload. It is JSON, which needs up to two and a half times the
bytes of YAML, so that every policy that was read can be stored and read again."""

POLICY_DEPTH = 32
"""The deepest nesting of lists and mappings in a policy. Four levels of groups need 13."""

NUMBER_LENGTH = 32
"""The longest number in a policy, in characters; the largest that a field takes has 10."""

SNAPSHOT_BYTES = 256 * 1024
"""The longest runtime snapshot that `muster record` reads, in bytes of UTF-8. Those of the shipped runtimes
have 2 to 6 KiB; reading 256 KiB takes less than a second. A longer one is left out of the recording."""

SNAPSHOT_DEPTH = 64
"""The deepest nesting of a runtime snapshot. A runtime with affinity terms in its pod templates needs 20."""

RUNTIME_JOBS = 128
"""The most replicatedJobs of a runtime that mark_runtime labels. The shipped runtimes have up to three. The
account policy compares each with all others, and the API server refuses 230 with long names as too costly."""

MESSAGE_LENGTH = 200
"""The most characters of a tenant's text that a refusal repeats."""


@dataclass(frozen=True)
class Limits:
    """The limits of a function: variables `MUSTER_LIMIT_<NAME>`.

    Attributes:
        replicated_jobs: pod templates of one owner. Each is compared with those it waits for. A Workload has
            at most 8 templates in a list, so more pod templates only share groups; 128 are planned in 30 ms.
        pod_groups: PodGroups of one owner; half as many CompositePodGroups. 512 are 4,096 pods in blocks of
            8; a JobSet of 519 bytes could otherwise ask for 10,000, which take a minute to create.
        pod_group_members: pod templates of all PodGroups of one owner, counted once for each PodGroup: what a
            plan goes through. 4 for each PodGroup at the limit.
        job_blocks: blocks of all Jobs of one owner, where Jobs share the PodGroups of their blocks: a plan
            counts the pods of each block, in 2 us. 32 Jobs have so many in 512 PodGroups.
        writes: writes for one event; the rest follows at its next delivery. All writes of 512 PodGroups fit
            into the six deliveries of a trigger (`retry: 5` in eventing/triggers), and one delivery takes
            about half a second.
        gates_at_once: gates of one event that are removed at the same time. A gang waits for its last gate,
            and most of the time of a removal passes in the API server.
        page_bytes: bytes to aim at in one page of a list; a page of twice as many is read again in smaller
            parts. 500 pods have 4 MB; 500 objects of the most bytes that etcd stores would have 750 MB.
        kept_bytes: bytes that a sweep keeps of one object; larger ones are read again one by one. Muster's
            view of a Job has about 1 KB.
        sweep_bytes: bytes that a sweep keeps of all objects. One namespace gets no more than is left for the
            others, so at most half; of its further objects only the names are kept, and they are read again
            one by one. The first 512 bytes of each object do not count. 10,000 gangs have 18 MB. Of
            FailedCreate Events all counts, and those for which there is no room are left out.
        event_bytes: memory for the lists of all events in work, beyond the first 1.5 MiB of each, as it is
            estimated from their JSON. The events of one namespace get three quarters of what others leave:
            alone 5,200 pods with three conditions and two tolerations. With what sweeps keep for several
            namespaces and the bodies of requests (`bodies_limit_bytes`) it fits into the 448 MiB of a
            function.
    """

    replicated_jobs: int = 128
    pod_groups: int = 512
    pod_group_members: int = 2048
    job_blocks: int = 16 * 1024
    writes: int = 100
    gates_at_once: int = 4
    page_bytes: int = 4 * 1024 * 1024
    kept_bytes: int = 32 * 1024
    sweep_bytes: int = 64 * 1024 * 1024
    event_bytes: int = 96 * 1024 * 1024


DEFAULT_LIMITS = Limits()
"""The limits without any setting."""


def setting(name: str) -> str:
    """Return the environment variable of a limit: `MUSTER_LIMIT_POD_GROUPS`."""
    return f"MUSTER_LIMIT_{name.upper()}"
