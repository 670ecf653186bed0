"""The fixed sizes within which what a tenant writes becomes a plan; beyond them it is refused with its path.

Whoever may create Jobs in a namespace chooses these sizes, and one function serves all namespaces.
"""

from __future__ import annotations

POLICY_BYTES = 16 * 1024
"""The longest policy, in bytes of UTF-8. The shipped examples have up to 1 KiB; 64 groups with a topology, a
disruption mode and a preemption policy each have 13 KiB."""

STORED_POLICY_BYTES = 4 * POLICY_BYTES
"""The longest policy in the annotation of a Workload. It is JSON, which needs up to two and a half times the
bytes of YAML, so that every policy that was read can be stored and read again."""

POLICY_DEPTH = 32
"""The deepest nesting of lists and mappings in a policy. Four levels of groups need 13."""

REPLICATED_JOBS = 128
"""The most replicatedJobs of an owner, and of a runtime that mark_runtime labels. A Workload has at most 8
templates in a list, so more only share groups; the shipped runtimes have up to three."""

POD_GROUPS = 512
"""The most PodGroups of one owner: 4,096 pods in blocks of 8. A JobSet of 519 bytes could else ask for
10,000."""

COMPOSITE_POD_GROUPS = POD_GROUPS // 2
"""The most CompositePodGroups of one owner."""

WRITES = 100
"""The most writes for one event; the rest follows at its next delivery. All writes of 512 PodGroups fit into
the six deliveries of a trigger (`retry: 5` in eventing/triggers)."""

MESSAGE_LENGTH = 200
"""The most characters of a tenant's text that a refusal repeats."""
