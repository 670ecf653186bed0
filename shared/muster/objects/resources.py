"""The API resources that Muster uses: group, version, plural and kind."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")
"""Valid names of objects; any other text in a URL's path might address another object."""
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""Valid label values, without the empty one."""


@dataclass(frozen=True)
class Resource:
    """A resource of the API; `api_version` is that of its objects: `v1`, `batch/v1`."""

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
        """Return the URL path of the collection, of one object or of its subresource."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(parts)


ALL: dict[tuple[str, str], Resource] = {}
"""Every known resource by API group and kind; `register_resource` adds those of a step of one's own."""


def register_resource(resource: Resource) -> Resource:
    """Make a kind known, so that a step of one's own can read and write it; returns the resource."""
    ALL.setdefault((resource.group, resource.kind), resource)
    return resource


def guess_plural(kind: str) -> str:
    """Return the plural of a kind by its spelling, as UnsafeGuessKindToResource (apimachinery) does."""
    singular = kind.lower()
    if singular.endswith("endpoints"):
        return singular
    if singular.endswith("s"):
        return f"{singular}es"
    return f"{singular[:-1]}ies" if singular.endswith("y") else f"{singular}s"


def _register(group: str, version: str, kind: str, *, namespaced: bool = True) -> Resource:
    return register_resource(Resource(group, version, guess_plural(kind), kind, namespaced))


_SCHEDULING, _TRAINER = "scheduling.k8s.io", "trainer.kubeflow.org"
_ADMISSION = "admissionregistration.k8s.io"

NAMESPACES = _register("", "v1", "Namespace", namespaced=False)
NODES = _register("", "v1", "Node", namespaced=False)
PODS = _register("", "v1", "Pod")
EVENTS = _register("", "v1", "Event")
CONFIGMAPS = _register("", "v1", "ConfigMap")
PRIORITY_CLASSES = _register(_SCHEDULING, "v1", "PriorityClass", namespaced=False)
JOBS = _register("batch", "v1", "Job")
STATEFUL_SETS = _register("apps", "v1", "StatefulSet")
REPLICA_SETS = _register("apps", "v1", "ReplicaSet")
DEPLOYMENTS = _register("apps", "v1", "Deployment")
JOBSETS = _register("jobset.x-k8s.io", "v1alpha2", "JobSet")
TRAINJOBS = _register(_TRAINER, "v1alpha1", "TrainJob")
TRAINING_RUNTIMES = _register(_TRAINER, "v1alpha1", "TrainingRuntime")
CLUSTER_TRAINING_RUNTIMES = _register(_TRAINER, "v1alpha1", "ClusterTrainingRuntime", namespaced=False)
WORKLOADS = _register(_SCHEDULING, "v1beta1", "Workload")
POD_GROUPS = _register(_SCHEDULING, "v1beta1", "PodGroup")
COMPOSITE_POD_GROUPS = _register(_SCHEDULING, "v1alpha3", "CompositePodGroup")
_MUTATING = "MutatingAdmissionPolicy"
MUTATING_ADMISSION_POLICIES = _register(_ADMISSION, "v1", _MUTATING, namespaced=False)
MUTATING_ADMISSION_POLICY_BINDINGS = _register(_ADMISSION, "v1", f"{_MUTATING}Binding", namespaced=False)
_REVIEW = "SelfSubjectAccessReview"
SELF_SUBJECT_ACCESS_REVIEWS = _register("authorization.k8s.io", "v1", _REVIEW, namespaced=False)

V1ALPHA2 = "v1alpha2"
"""The version of Workload and PodGroup in Kubernetes 1.36."""


@dataclass(frozen=True)
class SchedulingApi:
    """The versions of scheduling.k8s.io that an API server serves."""

    version: str = WORKLOADS.version
    """The version of Workload and PodGroup; "" if they are not served."""
    composites: bool = True
    """Whether CompositePodGroup is served (v1alpha3)."""

    @property
    def served(self) -> bool:
        """Whether PodGroups are served."""
        return bool(self.version)

    @property
    def resizable(self) -> bool:
        """Whether minCount may change; it is immutable in v1alpha2."""
        return self.version != V1ALPHA2


def by_kind(api_version: str, kind: str) -> Resource:
    """Return the resource of an object's `apiVersion` and `kind`."""
    resource = ALL.get((api_version.rpartition("/")[0], kind))
    if resource is None:
        raise LookupError(f"{kind} of {api_version} is not a kind that Muster knows")
    return resource


def is_known(api_version: str, kind: str) -> bool:
    """Whether Muster reads or writes a kind; a kind of that name in another API group is another kind."""
    return (api_version.rpartition("/")[0], kind) in ALL
