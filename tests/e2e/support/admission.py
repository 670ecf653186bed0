"""What admission does at this moment, asked by dry runs.

The API server follows namespaces, policies and priority classes from caches, so what was just written counts
a little later; on a busy machine the next request of a story would come first.
"""

from __future__ import annotations

from tests.cluster.api import Api
from tests.cluster.processes import until
from tests.contract.bodies import core, job, jobs, pod

_DRY_RUN = {"dryRun": "All"}


def policies_at_work(api: Api, namespace: str) -> bool:
    """Waits until the admission policies act in a namespace: each is compiled some time after it was made."""
    return until(lambda: marks_jobs(api, namespace) and stamps_pods(api, namespace), 90)


def marks_jobs(api: Api, namespace: str) -> bool:
    """Whether a Job made now would be marked."""
    probe = job("probe", completionMode="Indexed", parallelism=2, completions=2)
    # A JobSet's, because with the overlay native-jobs plain Jobs get no mark.
    probe["metadata"]["labels"] = {"jobset.sigs.k8s.io/jobset-uid": "12345678"}
    made = api.must("POST", jobs(namespace), probe, query=_DRY_RUN)
    return "muster.dev/group" in made["spec"]["template"]["metadata"].get("labels", {})


def stamps_pods(api: Api, namespace: str) -> bool:
    """Whether a pod of a marked Job made now would be taken, and gated."""
    of_job = {"batch.kubernetes.io/job-name": "probe", "batch.kubernetes.io/controller-uid": "12345678"}
    probe = pod("probe", {"labels": {**of_job, "muster.dev/group": "main"}}, restartPolicy="Never")
    answer = api.request("POST", core(namespace, "pods"), probe, query=_DRY_RUN)
    return answer.ok and "schedulingGates" in answer.body["spec"]


def class_is_known(api: Api, namespace: str, name: str) -> bool:
    """Waits until a pod of a priority class would be taken."""
    probe = pod("probe", priorityClassName=name)
    return until(lambda: api.request("POST", core(namespace, "pods"), probe, query=_DRY_RUN).ok, 30)


def roles_are_known(api: Api) -> bool:
    """Waits until functions have their rights: a server that was just started has yet to read its roles."""
    about = {"verb": "get", "group": "batch", "resource": "jobs"}
    account = "system:serviceaccount:muster-system:resize-gang"
    review = {"spec": {"user": account, "resourceAttributes": about}}

    def allowed() -> bool:
        answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return answer.ok and bool(answer.body["status"]["allowed"])

    return until(allowed, 60)
