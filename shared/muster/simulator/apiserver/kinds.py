"""The kinds that the server serves, with the gates and CustomResourceDefinitions that decide about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from muster.simulator.apiserver import schemas
from muster.simulator.apiserver.objects import Object, at, now
from muster.simulator.apiserver.schemas import Schema

SCHEDULING = "scheduling.k8s.io"
VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Gates:
    """The feature gates of a server, by their names in snake case, and the versions it serves.

    The defaults suit Muster; upstream all of these gates are off by default
    (`pkg/features/kube_features.go`, v1.37.1). As on the real server, a disabled gate drops its fields from
    new objects silently and removes its resources from discovery.

    Attributes:
        generic_workload: Workload and PodGroup, `pod.spec.schedulingGroup`, the PodGroup's finalizer.
        topology_aware_workload_scheduling: `schedulingConstraints`.
        composite_pod_group: CompositePodGroup and the fields that refer to it; 1.37 only.
        workload_with_job: `job.spec.scheduling`.
        pod_group_preemption_policy: `preemptionPolicy` of groups and templates.
        dra_workload_resource_claims: `resourceClaims` of groups and templates.
        served: the versions of scheduling.k8s.io beside v1 that `--runtime-config` enables.
    """

    generic_workload: bool = True
    topology_aware_workload_scheduling: bool = True
    composite_pod_group: bool = True
    workload_with_job: bool = False
    pod_group_preemption_policy: bool = False
    dra_workload_resource_claims: bool = False
    served: frozenset[str] = frozenset({"v1beta1", "v1alpha3", "v1alpha2"})


@dataclass(frozen=True)
class Kind:
    """A kind in one version, as the server serves it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    unconditional: bool = True
    stored: bool = True
    schema: Schema = field(default_factory=dict, compare=False, repr=False)
    definition: dict[str, Any] | None = field(default=None, compare=False, repr=False)

    @property
    def api_version(self) -> str:
        """The `apiVersion` of the objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> tuple[str, str]:
        """The key of the objects in the store: group and plural, shared by all versions."""
        return self.group, self.plural

    @property
    def custom(self) -> bool:
        """Whether a CustomResourceDefinition defines the kind."""
        return self.definition is not None

    @property
    def verbs(self) -> tuple[str, ...]:
        """The verbs, in the order of discovery."""
        return VERBS if self.stored else ("create",)

    @property
    def has_status(self) -> bool:
        """Whether the kind has a status subresource."""
        return "status" in self.subresources


def _kind(group: str, plural: str, kind: str, *subresources: str, version: str = "v1", **more: Any) -> Kind:
    return Kind(
        group, version, plural, kind, singular=kind.lower(), subresources=frozenset(subresources), **more
    )


def _group_kinds(version: str) -> tuple[Kind, ...]:
    return (
        _kind(SCHEDULING, "workloads", "Workload", version=version, unconditional=False),
        _kind(SCHEDULING, "podgroups", "PodGroup", "status", version=version, unconditional=False),
    )


_COMPOSITE = _kind(
    SCHEDULING, "compositepodgroups", "CompositePodGroup", "status", version="v1alpha3", unconditional=False
)
_ALL = ("all",)
_CLUSTER: dict[str, Any] = {"namespaced": False, "unconditional": False}
_POLICIES = (
    ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
    ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
    ("validatingadmissionpolicies", "ValidatingAdmissionPolicy", "status"),
    ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
)

CORE = (
    _kind("", "namespaces", "Namespace", "status", namespaced=False, short_names=("ns",)),
    _kind("", "nodes", "Node", "status", namespaced=False, short_names=("no",)),
    _kind("", "pods", "Pod", "status", "binding", "eviction", short_names=("po",), categories=_ALL),
    _kind("", "events", "Event", short_names=("ev",)),
    _kind("", "configmaps", "ConfigMap", short_names=("cm",)),
    _kind("", "secrets", "Secret"),
    _kind("", "services", "Service", "status", short_names=("svc",), categories=_ALL),
    _kind("", "serviceaccounts", "ServiceAccount", short_names=("sa",)),
    _kind("batch", "jobs", "Job", "status", categories=_ALL),
    _kind(
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        namespaced=False,
        stored=False,
    ),
    _kind("coordination.k8s.io", "leases", "Lease", unconditional=False),
    _kind(SCHEDULING, "priorityclasses", "PriorityClass", namespaced=False, short_names=("pc",)),
    *(_kind("admissionregistration.k8s.io", *names, **_CLUSTER) for names in _POLICIES),
    _kind(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        "status",
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        **_CLUSTER,
    ),
)


@cache
def builtin(release: str, gates: Gates) -> tuple[Kind, ...]:
    """Return the built-in kinds of a release with these gates, in the order of groups in discovery."""
    kinds = list(CORE)
    for version in ("v1beta1", "v1alpha3") if release == "1.37" else ("v1alpha2",):
        if version not in gates.served:
            continue
        if gates.generic_workload:
            kinds += _group_kinds(version)
        if version == "v1alpha3" and gates.composite_pod_group:
            kinds.append(_COMPOSITE)
    schema_of = schemas.by_kind(release)
    return tuple(replace(kind, schema=schema_of[kind.group, kind.version, kind.kind]) for kind in kinds)


def established(obj: Object) -> Object:
    """Return the status of a definition that is served: NamesAccepted and Established are true."""
    stored = [version["name"] for version in obj["spec"].get("versions") or [] if version.get("storage")]
    true = {"status": "True", "lastTransitionTime": now(), "reason": "Served", "message": ""}
    conditions = [{"type": kind, **true} for kind in ("NamesAccepted", "Established")]
    return {"acceptedNames": obj["spec"]["names"], "conditions": conditions, "storedVersions": stored}


def kinds_of(obj: Object, meta: Schema) -> tuple[Kind, ...]:
    """Return the kinds of the served versions of a definition, the stored version first."""
    spec = obj["spec"]
    crd_names = spec["names"]
    kinds = []
    for version in sorted(spec.get("versions") or [], key=lambda v: not v.get("storage")):
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        schema: Schema = dict(at(version, "schema", "openAPIV3Schema") or {})
        schema["properties"] = {**(schema.get("properties") or {}), "metadata": meta}
        kinds.append(
            Kind(
                group=spec["group"],
                version=version["name"],
                plural=crd_names["plural"],
                kind=crd_names["kind"],
                namespaced=spec["scope"] == "Namespaced",
                singular=crd_names.get("singular") or crd_names["kind"].lower(),
                short_names=tuple(crd_names.get("shortNames") or ()),
                categories=tuple(crd_names.get("categories") or ()),
                subresources=frozenset({"status"} & subresources.keys()),
                unconditional=False,
                schema=schema,
                definition=obj,
            )
        )
    return tuple(kinds)


class Registry:
    """The kinds served now; built anew when the gates or the CustomResourceDefinitions change."""

    def __init__(self, release: str, gates: Callable[[], Gates]) -> None:
        self.release = release
        self._gates = gates
        self._custom: dict[str, tuple[Kind, ...]] = {}  # replaced, never changed: other threads read it
        self._built = self._build()

    def _build(self) -> tuple[Gates, object, dict[tuple[str, str, str], Kind]]:
        gates, custom = self._gates(), self._custom
        kinds = [*builtin(self.release, gates), *(kind for group in custom.values() for kind in group)]
        return gates, custom, {(kind.group, kind.version, kind.plural): kind for kind in kinds}

    def all(self) -> dict[tuple[str, str, str], Kind]:
        """Return the kinds by group, version and plural."""
        built = self._built
        if built[0] != self._gates() or built[1] is not self._custom:
            built = self._built = self._build()
        return built[2]

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind of a REST path; None if it is not served."""
        return self.all().get((group, version, plural))

    def of_object(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind of an object by its apiVersion and kind; None if it is not served."""
        group, _, version = api_version.rpartition("/")
        for served in self.all().values():
            if (served.group, served.version, served.kind) == (group, version, kind):
                return served
        return None

    def stored_kinds(self) -> dict[tuple[str, str], Kind]:
        """Return each stored kind by group and plural, in its preferred version."""
        kinds: dict[tuple[str, str], Kind] = {}
        for kind in self.all().values():
            kinds.setdefault(kind.group_resource, kind)
        return kinds

    def define(self, name: str, kinds: tuple[Kind, ...]) -> None:
        """Serve the kinds of the CustomResourceDefinition `name`; no kinds means stop serving them."""
        others = {key: value for key, value in self._custom.items() if key != name}
        self._custom = others | ({name: kinds} if kinds else {})
