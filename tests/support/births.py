"""What the admission policies of eventing/admission do to a pod or a Job at its creation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muster.policy import group_labels
from muster.simulator.admitted import admitted, marked

ENABLED = {group_labels.NAMESPACE_SWITCH: "enabled"}


def stamp_at_birth(pod: dict[str, Any]) -> dict[str, Any] | None:
    """The group and gate that a pod gets: `{"podGroupName": str, "gate": bool}`; None if it is left alone."""
    return stamp_between(pod, pod_at_birth(pod))


def pod_at_birth(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod as the policies leave it."""
    return admitted(_json(pod), {})


def stamp_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any] | None:
    """The group and gate that a pod has after its creation and had not before."""
    added, labels = (_gates(after) - _gates(before)), (_labels(after) - _labels(before))
    assert labels == ({(group_labels.GATED, "true")} if added else set()), "the label comes with the gate"
    group = after["spec"].get("schedulingGroup")
    if before["spec"].get("schedulingGroup") is not None or group is None:
        assert group == before["spec"].get("schedulingGroup")
        assert not added, "a gate without a group would never be lifted"
        return None
    assert added <= {group_labels.GATE}
    return {"podGroupName": group["podGroupName"], "gate": bool(added)}


def label_at_birth(job: dict[str, Any], namespace_labels: Mapping[str, str] = ENABLED) -> str | None:
    """The group label that a Job's template gets; None if it is left alone."""
    given, label = (
        (each["spec"]["template"].get("metadata", {}).get("labels") or {}).get(group_labels.GROUP)
        for each in (job, marked(_json(job), namespace_labels))
    )
    return label if given is None else None


def groups_at_birth(jobset: dict[str, Any]) -> dict[str, str]:
    """The group labels that the templates of a JobSet have after its creation, by replicatedJob."""
    return {
        job["name"]: job["template"]["spec"]["template"]["metadata"]["labels"][group_labels.GROUP]
        for job in marked(_json(jobset), ENABLED)["spec"]["replicatedJobs"]
        if group_labels.GROUP in (job["template"]["spec"]["template"]["metadata"].get("labels") or {})
    }


def _gates(pod: Mapping[str, Any]) -> set[str]:
    return {gate["name"] for gate in pod["spec"].get("schedulingGates") or []}


def _labels(pod: Mapping[str, Any]) -> set[tuple[str, str]]:
    return set((pod["metadata"].get("labels") or {}).items())


def _json(body: dict[str, Any]) -> dict[str, Any]:
    """The object as it would be sent: a tuple of a view is a list."""
    sent: dict[str, Any] = json.loads(json.dumps(body))
    return sent


def metadata_of_pods(job: str, uid: str = "12345678", **labels: str) -> dict[str, Any]:
    """Return labels and owner of the pods that the Job controller creates for a Job, with further labels."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": uid, "controller": True}
    of_job = {"batch.kubernetes.io/job-name": job, "batch.kubernetes.io/controller-uid": uid}
    return {"labels": of_job | labels, "ownerReferences": [reference]}
