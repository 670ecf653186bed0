"""Where each kind lives in the API: group, version and plural, spelled once."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")
"""What Kubernetes lets be a name. Whatever else came into a URL's path might lead to another object."""
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""What Kubernetes lets be the value of a label, but for the empty one."""


@dataclass(frozen=True)
class Resource:
    """Where a kind lives in the API; `api_version` is that of its objects: `v1`, `batch/v1`."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    api_version: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)

    def path(self, name: str = "", namespace: str = "", subresource: str = "") -> str:
        """The URL path of the collection, of one object or of its subresource."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(parts)


ALL: list[Resource] = []
"""Every kind that Muster reads or writes; a kind of owner that is added elsewhere appends its own."""


def _known(group: str, version: str, plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    ALL.append(Resource(group, version, plural, kind, namespaced))
    return ALL[-1]


NAMESPACES = _known("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = _known("", "v1", "nodes", "Node", namespaced=False)
PODS = _known("", "v1", "pods", "Pod")
EVENTS = _known("", "v1", "events", "Event")
CONFIGMAPS = _known("", "v1", "configmaps", "ConfigMap")
RESOURCE_QUOTAS = _known("", "v1", "resourcequotas", "ResourceQuota")
PRIORITY_CLASSES = _known("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
JOBS = _known("batch", "v1", "jobs", "Job")
JOBSETS = _known("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
TRAINJOBS = _known("trainer.kubeflow.org", "v1alpha1", "trainjobs", "TrainJob")
TRAINING_RUNTIMES = _known("trainer.kubeflow.org", "v1alpha1", "trainingruntimes", "TrainingRuntime")
CLUSTER_TRAINING_RUNTIMES = _known(
    "trainer.kubeflow.org", "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime", namespaced=False
)
WORKLOADS = _known("scheduling.k8s.io", "v1beta1", "workloads", "Workload")
POD_GROUPS = _known("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
COMPOSITE_POD_GROUPS = _known("scheduling.k8s.io", "v1alpha3", "compositepodgroups", "CompositePodGroup")
MUTATING_ADMISSION_POLICIES = _known(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicies",
    "MutatingAdmissionPolicy",
    namespaced=False,
)
MUTATING_ADMISSION_POLICY_BINDINGS = _known(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingadmissionpolicybindings",
    "MutatingAdmissionPolicyBinding",
    namespaced=False,
)

SELF_SUBJECT_ACCESS_REVIEWS = _known(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)

V1ALPHA2 = "v1alpha2"
"""The version of Workload and PodGroup in Kubernetes 1.36."""


@dataclass(frozen=True)
class SchedulingApi:
    """What an API server serves of scheduling.k8s.io.

    Attributes:
        version: of Workload and PodGroup; "" when they are not served.
        composites: whether CompositePodGroup is served (v1alpha3, gate CompositePodGroup).
    """

    version: str = WORKLOADS.version
    composites: bool = True

    @property
    def served(self) -> bool:
        """Whether there are PodGroups at all."""
        return bool(self.version)

    @property
    def resizable(self) -> bool:
        """Whether minCount may change; it is immutable in v1alpha2."""
        return self.version != V1ALPHA2

    @property
    def unasked(self) -> bool:
        """Whether the Job controller, with its gate WorkloadWithJob, groups Jobs without being asked."""
        return self.version == V1ALPHA2


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
