"""Waits until admission policies, priority classes and roles take effect, probed by dry-run requests.

The API server reads namespaces, policies and priority classes from caches, so a change takes effect a little
later; on a busy machine the next request of a story would come before that.
"""

from __future__ import annotations

from muster.objects.resources import JOBSETS
from tests.cluster.api import KubernetesApi
from tests.cluster.processes import until
from tests.contract.bodies import core, job, jobs, pod
from tests.e2e.support.owners import a_jobset
from tests.support.births import metadata_of_pods

_GROUP = "muster.dev/group"

_DRY_RUN = {"dryRun": "All"}


def policies_at_work(api: KubernetesApi, namespace: str) -> bool:
    """Wait until the admission policies act in a namespace; return whether they do."""
    return until(lambda: labels_jobs(api, namespace) and stamps_pods(api, namespace), 90)


def labels_jobs(api: KubernetesApi, namespace: str) -> bool:
    """Return whether a Job and a JobSet created now would be labelled; native-jobs asks upstream for Jobs."""
    probe = job("probe", completionMode="Indexed", parallelism=2, completions=2)
    spec = api.must("POST", jobs(namespace), probe, query=_DRY_RUN)["spec"]
    if "scheduling" not in spec and _GROUP not in str(spec["template"]["metadata"]):
        return False
    jobset = a_jobset("probe", {"workers": (1, 1)})
    answer = api.request("POST", JOBSETS.path("", namespace), jobset, query=_DRY_RUN)
    return answer.status == 404 or _GROUP in str(answer.body.get("spec"))


def stamps_pods(api: KubernetesApi, namespace: str) -> bool:
    """Return whether a pod of a labelled Job created now would be accepted and gated."""
    probe = pod("probe", metadata_of_pods("probe", **{"muster.dev/group": "main"}), restartPolicy="Never")
    answer = api.request("POST", core(namespace, "pods"), probe, query=_DRY_RUN)
    return answer.ok and "schedulingGates" in answer.body["spec"]


def class_is_known(api: KubernetesApi, namespace: str, name: str) -> bool:
    """Wait until a pod of a priority class is accepted; return whether it is."""
    probe = pod("probe", priorityClassName=name)
    return until(lambda: api.request("POST", core(namespace, "pods"), probe, query=_DRY_RUN).ok, 30)


def roles_are_known(api: KubernetesApi) -> bool:
    """Wait until a restarted API server has read the roles of the functions; return whether it has."""
    about = {"verb": "get", "group": "batch", "resource": "jobs"}
    account = "system:serviceaccount:muster-system:resize-gang"
    review = {"spec": {"user": account, "resourceAttributes": about}}

    def allowed() -> bool:
        answer = api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return answer.ok and bool(answer.body["status"]["allowed"])

    return until(allowed, 60)
