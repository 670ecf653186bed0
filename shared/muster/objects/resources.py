"""Where each kind lives in the API: group, version and plural, spelled once."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")
"""What Kubernetes lets be a name. Whatever else came into a URL's path might lead to another object."""
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""What Kubernetes lets be the value of a label, but for the empty one."""


@dataclass(frozen=True)
class Resource:
    """What a REST path needs to know of a kind."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects: `v1`, `batch/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of one object or of its subresource."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(parts)


NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event")
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
JOBS = Resource("batch", "v1", "jobs", "Job")
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
TRAINJOBS = Resource("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
TRAINING_RUNTIMES = Resource("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", "TrainingRuntime")
CLUSTER_TRAINING_RUNTIMES = Resource(
    "trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", namespaced=False
)
WORKLOADS = Resource("scheduling.k8s.io", "v1beta1", "workloads", "Workload")
POD_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
COMPOSITE_POD_GROUPS = Resource("scheduling.k8s.io", "v1alpha3", "compositepodgroups", "CompositePodGroup")
MUTATING_ADMISSION_POLICIES = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicies",
    "MutatingAdmissionPolicy",
    namespaced=False,
)
MUTATING_ADMISSION_POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding",
    namespaced=False,
)

SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)

ALL = [
    NAMESPACES,
    NODES,
    PODS,
    EVENTS,
    CONFIGMAPS,
    RESOURCE_QUOTAS,
    PRIORITY_CLASSES,
    JOBS,
    JOBSETS,
    TRAINJOBS,
    TRAINING_RUNTIMES,
    CLUSTER_TRAINING_RUNTIMES,
    WORKLOADS,
    POD_GROUPS,
    COMPOSITE_POD_GROUPS,
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    SELF_SUBJECT_ACCESS_REVIEWS,
]
"""Every kind that Muster reads or writes; a kind of owner that is added elsewhere appends its own."""


def by_kind(api_version: str, kind: str) -> Resource:
    """The resource of an object's `apiVersion` and `kind`.

    The version may be any that the group serves: kinds are told apart by group.

    Raises:
        LookupError: the kind is none that Muster reads or writes.
    """
    group = api_version.rpartition("/")[0]
    for resource in ALL:
        if (resource.group, resource.kind) == (group, kind):
            return resource
    raise LookupError(f"{kind} of {api_version} is not a kind that Muster knows")


def guess_plural(kind: str) -> str:
    """The plural of a kind by its spelling, as events name it, also of kinds that Muster does not know.

    The rule is UnsafeGuessKindToResource's (pkg/api/meta/restmapper.go, k8s.io/apimachinery v0.37.1).
    """
    singular = kind.lower()
    if singular.endswith("endpoints"):
        return singular
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"
