"""What the admission policies of eventing/admission do to a pod or a Job at its creation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muster.policy import group_labels
from muster.simulator.admitted import admitted

ENABLED = {group_labels.NAMESPACE_SWITCH: "enabled"}


def stamp_at_birth(pod: dict[str, Any]) -> dict[str, Any] | None:
    """The group and gate that a pod gets: `{"podGroupName": str, "gate": bool}`; None if it is left alone."""
    return stamp_between(pod["spec"], admitted(_json(pod), {})["spec"])


def stamp_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any] | None:
    """The group and gate that a pod's spec has after its creation and had not before."""
    gates, given = ({gate["name"] for gate in spec.get("schedulingGates") or []} for spec in (after, before))
    added = gates - given
    if before.get("schedulingGroup") is not None or "schedulingGroup" not in after:
        assert after.get("schedulingGroup") == before.get("schedulingGroup")
        assert not added, "a gate without a group would never be lifted"
        return None
    assert added <= {group_labels.GATE}
    return {"podGroupName": after["schedulingGroup"]["podGroupName"], "gate": group_labels.GATE in added}


def label_at_birth(job: dict[str, Any], namespace_labels: Mapping[str, str] = ENABLED) -> str | None:
    """The group label that a Job's template gets; None if it is left alone."""
    return label_between(job, admitted(_json(job), namespace_labels))


def label_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """The group label that a Job's template has after its creation and had not before."""
    given, label = (
        (job["spec"]["template"].get("metadata", {}).get("labels") or {}).get(group_labels.GROUP)
        for job in (before, after)
    )
    return label if given is None else None


def _json(body: dict[str, Any]) -> dict[str, Any]:
    """The object as it would be sent: a tuple of a view is a list."""
    sent: dict[str, Any] = json.loads(json.dumps(body))
    return sent
