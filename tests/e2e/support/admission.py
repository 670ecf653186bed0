"""What admission does at this moment, asked by dry runs.

The API server follows namespaces, policies and priority classes from caches, so what was just written counts
a little later; on a busy machine the next request of a story would come first.
"""

from __future__ import annotations

from typing import Any

from tests.cluster.api import Api
from tests.cluster.processes import until

Object = dict[str, Any]

_CONTAINERS = [{"name": "main", "image": "example.com/train"}]
_DRY_RUN = {"dryRun": "All"}


def policies_at_work(api: Api, namespace: str) -> bool:
    """Waits until the admission policies act in a namespace: each is compiled some time after it was made."""
    return until(lambda: marks_jobs(api, namespace) and stamps_pods(api, namespace), 90)


def marks_jobs(api: Api, namespace: str) -> bool:
    """Whether a Job made now would be marked."""
    template = {"spec": {"restartPolicy": "Never", "containers": _CONTAINERS}}
    spec = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": template}
    # A JobSet's, because with the overlay native-jobs plain Jobs get no mark.
    labels = {"jobset.sigs.k8s.io/jobset-uid": "12345678"}
    probe = {"metadata": {"name": "probe", "labels": labels}, "spec": spec}
    job = api.must("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", probe, query=_DRY_RUN)
    return "muster.dev/group" in job["spec"]["template"]["metadata"].get("labels", {})


def stamps_pods(api: Api, namespace: str) -> bool:
    """Whether a pod of a marked Job made now would be taken, and gated."""
    of_job = {"batch.kubernetes.io/job-name": "probe", "batch.kubernetes.io/controller-uid": "12345678"}
    probe = _pod({**of_job, "muster.dev/group": "main"})
    answer = api.request("POST", _pods(namespace), probe, query=_DRY_RUN)
    return answer.status == 201 and "schedulingGates" in answer.body["spec"]


def knows_class(api: Api, namespace: str, name: str) -> bool:
    """Whether a pod of a priority class made now would be taken."""
    probe = _pod({}, priorityClassName=name)
    return api.request("POST", _pods(namespace), probe, query=_DRY_RUN).status == 201


def knows_roles(api: Api) -> bool:
    """Whether functions have their rights: a server that was just started has yet to read its roles."""
    about = {"verb": "get", "group": "batch", "resource": "jobs"}
    account = "system:serviceaccount:muster-system:resize-gang"
    review = {"spec": {"user": account, "resourceAttributes": about}}
    answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return answer.ok and bool(answer.body["status"]["allowed"])


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def _pod(labels: dict[str, str], **fields: str) -> Object:
    spec = {"restartPolicy": "Never", "containers": _CONTAINERS, **fields}
    return {"metadata": {"name": "probe", "labels": labels}, "spec": spec}
