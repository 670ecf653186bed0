"""What owners and pods say of their groups, as plain objects."""

from __future__ import annotations

from muster.policy.group_labels import GATE
from muster.policy.owners.job import CONDITION_PREFIX
from muster.policy.status.conditions import READY, SCHEDULED
from muster.replay.snapshots import Object

MUSTER_CONDITIONS = (READY, SCHEDULED)


def muster_conditions(owner: Object) -> list[Object]:
    """Return the conditions that Muster wrote on an owner, without the prefix they have on a Job."""
    conditions = (owner.get("status") or {}).get("conditions") or []
    named = [{**each, "type": str(each.get("type")).removeprefix(CONDITION_PREFIX)} for each in conditions]
    return [condition for condition in named if condition["type"] in MUSTER_CONDITIONS]


def is_gated(pod: Object) -> bool:
    """Whether a pod has Muster's scheduling gate."""
    return GATE in gates(pod)


def gates(pod: Object) -> set[str]:
    """Return the names of the scheduling gates of a pod."""
    return {gate["name"] for gate in pod["spec"].get("schedulingGates") or []}


def group_of(pod: Object) -> str:
    """Return the name of the PodGroup in a pod's schedulingGroup; "" if it has none."""
    name: str = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName", "")
    return name
