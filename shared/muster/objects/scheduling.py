"""Views of Workload and PodGroup in the shape of scheduling.k8s.io/v1beta1 (Kubernetes v1.37.1).

All of Muster uses this shape; `muster.objects.versions` translates other served versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

from pydantic import Field

from muster.objects.meta import KubernetesObject, ManagedMeta, View, find_condition, is_true, turned_at
from muster.objects.pods import Conditions

PLACED = "PodGroupInitiallyScheduled"
"""True once the scheduler placed the group; it stays True, also after a restart of the pods."""

MOST_MEMBERS = 2**31 - 1
"""The largest minCount or minGroupCount: an int32 (scheduling/v1beta1/types.go, Kubernetes v1.37.1)."""

SETTINGS = {"scheduling_constraints", "disruption_mode", "preemption_policy", "resource_claims"}
"""The fields that a group copies unchanged from its template."""


class Gang(View):
    """`gang: {minCount}`: at least that many pods are placed together, or none."""

    min_count: int = 1
    min_group_count: int | None = None


class SchedulingPolicy(View):
    """Exactly one of `basic: {}` and `gang: {minCount}`; a composite's gang has `minGroupCount` instead."""

    basic: dict[str, Any] | None = None
    gang: Gang | None = None

    @property
    def min_count(self) -> int:
        """The minCount of a gang; 0 for a basic group, which has none."""
        return self.gang.min_count if self.gang else 0

    @property
    def needs(self) -> int:
        """The minCount of a gang, or minGroupCount of a composite gang; 0 for a basic group."""
        return (self.gang.min_group_count or self.gang.min_count) if self.gang else 0


class PodGroupTemplate(View):
    """One entry of a Workload's `podGroupTemplates`."""

    name: str
    scheduling_policy: SchedulingPolicy = Field(default_factory=SchedulingPolicy)
    priority_class_name: str = ""
    scheduling_constraints: dict[str, Any] | None = None
    disruption_mode: dict[str, Any] | None = None
    preemption_policy: str | None = None
    resource_claims: tuple[dict[str, Any], ...] | None = None

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The fields that a group copies unchanged from its template, as the API spells them."""
        fields = self.model_dump(by_alias=True, exclude_none=True, include=SETTINGS)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


class CompositePodGroupTemplate(PodGroupTemplate):
    """One entry of `compositePodGroupTemplates`; at least one child (v1alpha3, gate CompositePodGroup)."""

    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()

    def leaves(self) -> Iterator[str]:
        """Yield the names of all PodGroup templates below it."""
        for template, _ in _walk(self, self.name):
            if not isinstance(template, CompositePodGroupTemplate):
                yield template.name


class ControllerRef(View):
    """The owner of a Workload by group, kind and name, without version and UID."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(View):
    """The spec of a Workload."""

    controller_ref: ControllerRef = Field(default_factory=ControllerRef)
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()


class Workload(KubernetesObject):
    """A Workload; it has no status."""

    spec: WorkloadSpec = Field(default_factory=WorkloadSpec)

    @property
    def composite(self) -> bool:
        """Whether it has composite templates."""
        return bool(self.spec.composite_pod_group_templates)

    def hierarchy(self) -> Iterator[tuple[PodGroupTemplate, str]]:
        """Yield every template with the name of its parent ("" at the top), parents before children."""
        yield from _walk(self.spec, "")


class WorkloadRef(View):
    """The template, and its Workload, that a group says it was made from; the scheduler reads neither."""

    workload_name: str = ""
    template_name: str = ""


class PodGroupSpec(View):
    """The spec of a PodGroup; all but `minCount` is fixed at creation."""

    workload_ref: WorkloadRef | None = None
    scheduling_policy: SchedulingPolicy = Field(default_factory=SchedulingPolicy)
    parent: str = Field("", alias="parentCompositePodGroupName")
    priority_class_name: str = ""


class PodGroupStatus(View):
    """The status of a PodGroup, written by the scheduler."""

    conditions: Conditions = ()


class AnyGroup(KubernetesObject):
    """A PodGroup or a CompositePodGroup."""

    minimum_field: ClassVar[str]
    member_kind: ClassVar[str]

    spec: PodGroupSpec = Field(default_factory=PodGroupSpec)


class PodGroup(AnyGroup):
    """A PodGroup."""

    minimum_field = "minCount"
    member_kind = "pods"

    status: PodGroupStatus = Field(default_factory=PodGroupStatus)

    @property
    def placed(self) -> bool:
        """Whether the scheduler has ever placed it."""
        return is_true(self.status.conditions, PLACED)

    @property
    def placed_at(self) -> datetime | None:
        """When the scheduler first placed it; None if it has not."""
        return turned_at(self.status.conditions, PLACED, "True")

    @property
    def refused_at(self) -> datetime | None:
        """When the scheduler first refused it since it was created; None if it did not, or has placed it."""
        return turned_at(self.status.conditions, PLACED, "False")

    @property
    def refusal(self) -> tuple[str, str] | None:
        """Reason and message of the scheduler's last refusal; None if there is none."""
        condition = find_condition(self.status.conditions, PLACED)
        if condition is None or condition.get("status") == "True":
            return None
        return condition.get("reason", ""), condition.get("message", "")


class ManagedPodGroup(PodGroup):
    """A PodGroup with its managedFields."""

    metadata: ManagedMeta


class CompositePodGroup(AnyGroup):
    """A CompositePodGroup; its spec is immutable, and no controller writes its status in 1.37."""

    minimum_field = "minGroupCount"
    member_kind = "child groups"


class PriorityClass(KubernetesObject):
    """A PriorityClass (scheduling.k8s.io/v1)."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


def _walk(
    level: WorkloadSpec | CompositePodGroupTemplate, parent: str
) -> Iterator[tuple[PodGroupTemplate, str]]:
    for leaf in level.pod_group_templates:
        yield leaf, parent
    for composite in level.composite_pod_group_templates:
        yield composite, parent
        yield from _walk(composite, composite.name)
