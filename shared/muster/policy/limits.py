"""The sizes within which what a tenant writes becomes a plan; beyond them it is refused with its path."""

from __future__ import annotations

POLICY_BYTES = 16 * 1024
"""The longest policy, in bytes of UTF-8; 64 groups with all their fields have 13 KiB."""

STORED_POLICY_BYTES = 4 * POLICY_BYTES
"""The longest policy in the annotation of a Workload: JSON needs up to 2.5 times the bytes of YAML."""

POLICY_DEPTH = 32
"""The deepest nesting of lists and mappings in a policy. Four levels of groups need 13."""

REPLICATED_JOBS = 128
"""The most replicatedJobs of an owner, and of a runtime that mark_runtime labels."""

POD_GROUPS = 512
"""The most PodGroups of one owner: 4,096 pods in blocks of 8."""

COMPOSITE_POD_GROUPS = POD_GROUPS // 2
"""The most CompositePodGroups of one owner."""

WRITES = 100
"""The most writes for one event: those of 512 PodGroups fit into the six deliveries of a trigger."""

MESSAGE_LENGTH = 200
"""The most characters of a tenant's text that a refusal repeats."""
