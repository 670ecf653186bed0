"""The data of reply events. Fields are added, never renamed.

Docstrings and descriptions are published in eventing/schemas.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, frozen=True)


class Owner(_Model):
    """The object that the event is about; the event's `subject` is its path."""

    api_version: str
    kind: str
    namespace: str = Field(description="Empty for a ClusterTrainingRuntime.")
    name: str
    uid: str


class _About(_Model):
    owner: Owner


class WorkloadCreated(_About):
    """create_workload made a Workload of the owner's groups."""

    workload: str = Field(description="Its name, in the owner's namespace.")


class PodGroupsCreated(_About):
    """create_pod_groups made groups that a Workload names; none is listed that was there or was refused."""

    workload: str = Field(description="The Workload's name.")
    pod_groups: list[str] = Field(
        description="Names of the created PodGroups, fallback PodGroups included, and CompositePodGroups.",
        min_length=1,
    )


class GaveUp(_About):
    """There will be no gang; stand-ins let the pods run one by one, unless the policy holds them."""

    reason: str = Field(description="The reason, see docs/operations.md.")
    message: str = Field(description="The reason in words, and what to check.")


class GatesLifted(_About):
    """patch_pods let pods go to the scheduler."""

    pod_group: str = Field(description="The PodGroup they belong to.")
    pods: int = Field(description="Number of pods.", ge=1)


class GangResized(_About):
    """resize_gang wrote minCount."""

    min_counts: dict[str, int] = Field(description="The desired minCount, by the PodGroup's name.")


class ConditionsWritten(_About):
    """emit_conditions changed what the owner says: placed as a whole, or not and why."""

    reason: str = Field(description="The reason of the condition PodGroupsScheduled, see docs/operations.md.")
    message: str = Field(description="Its message, with counts per group.")


class RuntimeMarked(_About):
    """mark_runtime wrote marks on a runtime's pod templates, or took its own back."""

    changes: list[str] = Field(description="One line for each changed field.", min_length=1)


class PolicyRefused(_About):
    """mark_runtime found a policy that cannot be used; what was marked stays as it is."""

    reason: str = Field(description="The reason, see docs/operations.md.")
    message: str = Field(description="The field's path and the error.")


REPLIES: dict[str, type[BaseModel]] = {
    "dev.muster.create_workload.created": WorkloadCreated,
    "dev.muster.create_workload.gave-up": GaveUp,
    "dev.muster.create_pod_groups.created": PodGroupsCreated,
    "dev.muster.patch_pods.lifted": GatesLifted,
    "dev.muster.resize_gang.resized": GangResized,
    "dev.muster.emit_conditions.scheduled": ConditionsWritten,
    "dev.muster.emit_conditions.waiting": ConditionsWritten,
    "dev.muster.mark_runtime.marked": RuntimeMarked,
    "dev.muster.mark_runtime.refused": PolicyRefused,
}
"""The data of every reply event, by its type."""
