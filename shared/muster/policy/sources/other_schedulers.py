"""Advice for policies that choose another scheduler in a source where that has no effect."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muster.objects.meta import ObjectRef
from muster.policy.owners import kind_of
from muster.policy.owners.kind import OwnerObject


def way_to_kai(queue: str, owner: OwnerObject | None, annotation: str) -> str:
    """Return how to hand pods to KAI: schedulerName and queue must be set before the first pod exists."""
    if owner is not None and _runtime_of(owner) is None:
        label = f" and the label kai.scheduler/queue: {queue}" if queue else ""
        return (
            f"comes too late for an existing {owner.kind}; "
            f"create it with schedulerName: kai-scheduler{label} in its pod templates"
        )
    policy = f"{{kaiScheduler: {{queue: {queue}}}}}" if queue else "{kaiScheduler: {}}"
    return (
        "only a runtime can choose another scheduler, before the pods exist: "
        f"kubectl annotate --overwrite {_runtime(owner)} '{annotation}={policy}'"
    )


def way_to_trainer(policy: Mapping[str, Any], owner: OwnerObject | None) -> str:
    """Return how to set the Trainer's scheduler: it reads only spec.podGroupPolicy of the runtime."""
    patch = json.dumps({"spec": {"podGroupPolicy": policy}})
    return (
        "the Trainer reads it in spec.podGroupPolicy of a runtime only: "
        f"kubectl patch {_runtime(owner)} --type merge -p '{patch}'"
    )


def _runtime(owner: OwnerObject | None) -> str:
    ref = None if owner is None else _runtime_of(owner)
    if ref is None:
        return "clustertrainingruntime NAME"
    where = f" -n {ref.namespace}" if ref.namespace else ""
    return f"{ref.kind.lower()} {ref.name}{where}"


def _runtime_of(owner: OwnerObject) -> ObjectRef | None:
    kind = kind_of(owner)
    return None if kind is None else kind.runtime(owner)
