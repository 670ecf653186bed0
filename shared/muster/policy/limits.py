"""Limits on what a tenant can write into a policy, each with its reason; a refusal names the limit."""

from __future__ import annotations

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

MESSAGE_LENGTH = 200
"""The most characters of a tenant's text that a refusal repeats."""
