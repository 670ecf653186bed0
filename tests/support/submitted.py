"""Owners as users submit them: without status and UID, with what the API server requires of containers."""

from __future__ import annotations

from tests.support.builders import Object


def submitted(owner: Object) -> Object:
    """Return the Job, JobSet or TrainJob `llama` as a user submits it, with an image of each container."""
    spec = owner["spec"]
    for job in [entry["template"] for entry in spec.get("replicatedJobs", ())] or [owner]:
        if "template" in job["spec"]:
            container = {"name": "main", "image": "pause"}
            job["spec"]["template"]["spec"] |= {"restartPolicy": "Never", "containers": [container]}
    return {key: owner[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "llama"}}
