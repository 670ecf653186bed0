"""The Jobs of a JobSet: names, labels, and the defaults of the JobSet webhook (jobset v0.12.0)."""

from __future__ import annotations

import hashlib

from muster.cluster.interface import Object
from muster.simulator.apiserver.objects import copied
from muster.simulator.controllers.fields import controller_reference

PREFIX = "jobset.sigs.k8s.io/"
REPLICATED_JOB = PREFIX + "replicatedjob-name"
RESTART_ATTEMPT = PREFIX + "restart-attempt"


def with_defaults(jobset: Object) -> Object:
    """Return a copy with the defaults of the CRD and the mutating webhook (jobset_webhook.go, Default)."""
    jobset = copied(jobset)
    spec = jobset["spec"]
    spec.setdefault("successPolicy", {}).setdefault("operator", "All")
    spec.setdefault("startupPolicy", {}).setdefault("startupPolicyOrder", "AnyOrder")
    network = spec.setdefault("network", {})
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    for rjob in spec.get("replicatedJobs") or []:
        rjob.setdefault("replicas", 1)
        rjob.setdefault("groupName", "default")
        job_spec = rjob["template"].setdefault("spec", {})
        job_spec.setdefault("completionMode", "Indexed")
        job_spec["template"].setdefault("spec", {}).setdefault("restartPolicy", "OnFailure")
    return jobset


def child_name(jobset: Object, rjob: Object, index: int) -> str:
    """Return the name of a child Job: `<jobset>-<replicatedJob>-<index>`."""
    return f"{jobset['metadata']['name']}-{rjob['name']}-{index}"


def child_job(jobset: Object, rjob: Object, index: int) -> Object:
    """Return the Job at an index of a replicatedJob, for the current attempt (constructJob)."""
    template = copied(rjob["template"])
    spec = template["spec"]
    keys = jobset_keys(jobset, rjob, index)
    metadata = template.get("metadata") or {}
    pod = spec["template"]
    pod_metadata = pod.get("metadata") or {}
    pod["metadata"] = {
        **pod_metadata,
        "labels": {**(pod_metadata.get("labels") or {}), **keys},
        "annotations": {**(pod_metadata.get("annotations") or {}), **keys},
    }
    if jobset["spec"]["network"]["enableDNSHostnames"]:
        pod["spec"]["subdomain"] = _subdomain(jobset)
    spec["suspend"] = bool(jobset["spec"].get("suspend"))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": child_name(jobset, rjob, index),
            "namespace": jobset["metadata"]["namespace"],
            "labels": {**(metadata.get("labels") or {}), **keys},
            "annotations": {**(metadata.get("annotations") or {}), **keys},
            "ownerReferences": [controller_reference(jobset)],
        },
        "spec": spec,
    }


def jobset_keys(jobset: Object, rjob: Object, index: int) -> dict[str, str]:
    """Return the labels of Jobs and pods, which are also their annotations (labelAndAnnotateObject)."""
    metadata = jobset["metadata"]
    rjobs = jobset["spec"]["replicatedJobs"]
    group = [other for other in rjobs if other["groupName"] == rjob["groupName"]]
    path = f"{metadata['namespace']}/{child_name(jobset, rjob, index)}"
    values = {
        "jobset-name": metadata["name"],
        "jobset-uid": metadata["uid"],
        "replicatedjob-name": rjob["name"],
        "replicatedjob-replicas": rjob["replicas"],
        "restart-attempt": (jobset.get("status") or {}).get("restarts", 0),
        "global-replicas": sum(other["replicas"] for other in rjobs),
        "job-index": index,
        "job-key": hashlib.sha1(path.encode(), usedforsecurity=False).hexdigest(),
        "job-global-index": _before(rjobs, rjob) + index,
        "group-name": rjob["groupName"],
        "group-replicas": sum(other["replicas"] for other in group),
        "job-group-index": _before(group, rjob) + index,
    }
    return {PREFIX + key: str(value) for key, value in values.items()}


def resumed(job: Object, rjob: Object) -> Object:
    """Return the patch of a Job's spec for resuming: suspend, and five fields of the pod template."""
    stored = job["spec"]["template"]
    desired = rjob["template"]["spec"]["template"]
    metadata: Object = {}
    for name in ("labels", "annotations"):
        values = (desired.get("metadata") or {}).get(name)
        if values:
            metadata[name] = {**((stored.get("metadata") or {}).get(name) or {}), **values}
    pod: Object = {}
    if desired["spec"].get("nodeSelector"):
        pod["nodeSelector"] = {
            **(stored["spec"].get("nodeSelector") or {}),
            **desired["spec"]["nodeSelector"],
        }
    for name in ("tolerations", "schedulingGates"):
        current = stored["spec"].get(name) or []
        added = [entry for entry in desired["spec"].get(name) or [] if entry not in current]
        if added:
            pod[name] = [*current, *added]
    template = {key: value for key, value in (("metadata", metadata), ("spec", pod)) if value}
    return {"suspend": False} | ({"template": template} if template else {})


def _before(rjobs: list[Object], rjob: Object) -> int:
    """Number of Jobs of the replicatedJobs listed before `rjob`."""
    total = 0
    for other in rjobs:
        if other["name"] == rjob["name"]:
            break
        total += other["replicas"]
    return total


def _subdomain(jobset: Object) -> str:
    return str(jobset["spec"]["network"].get("subdomain") or jobset["metadata"]["name"])
