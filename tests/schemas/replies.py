"""The schemas of the reply events as files, for teams that hang steps of their own on them.

python -m tests.schemas.replies     writes them anew from the classes below
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from muster.data import EVENTING

FOLDER = EVENTING / "schemas" / "replies"


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
    """create_workload created the Workload of an owner."""

    workload: str = Field(description="Its name, in the owner's namespace.")


class PodGroupsCreated(_About):
    """create_pod_groups created groups of a Workload; existing and refused groups are not listed."""

    workload: str = Field(description="The Workload's name.")
    pod_groups: list[str] = Field(
        description="Names of the created PodGroups, fallback PodGroups included, and CompositePodGroups.",
        min_length=1,
    )


class GaveUp(_About):
    """No gang is created; the pods run in fallback PodGroups, or keep their gate (onFailure: Hold)."""

    reason: str = Field(description="The reason, see docs/operations.md.")
    message: str = Field(description="The cause, and what to check.")


class Gathered(_About):
    """gather_pods saw that the pods of a gang exist, which name it themselves; `owner` is their PodGroup."""


class Added(_About):
    """patch_pods heard of a new pod that names its gang itself; `owner` is its PodGroup, if it exists."""


class GatesLifted(_About):
    """patch_pods removed the gate of pods."""

    pod_group: str = Field(description="The PodGroup they belong to.")
    pods: int = Field(description="Number of pods.", ge=1)


class GangResized(_About):
    """resize_gang changed minCount."""

    min_counts: dict[str, int] = Field(description="The desired minCount, by the PodGroup's name.")


class GroupsMissing(_About):
    """resize_gang saw an owner without its groups, as when it is resumed; create_pod_groups makes them."""

    pod_groups: list[str] = Field(
        description="Names of the missing PodGroups and CompositePodGroups.", min_length=1
    )


class Look(_About):
    """resize_gang saw an owner that stopped, started or lost pods."""


class ConditionsWritten(_About):
    """emit_conditions changed the conditions of an owner."""

    reason: str = Field(description="The reason of the condition PodGroupsScheduled, see docs/operations.md.")
    message: str = Field(description="Its message, with counts per group.")


class RuntimeMarked(_About):
    """mark_runtime added or removed its group labels on the pod templates of a runtime."""

    changes: list[str] = Field(description="One line for each changed field.", min_length=1)


class PolicyRefused(_About):
    """The policy of a runtime is invalid; its labels stay as they are."""

    reason: str = Field(description="The reason, see docs/operations.md.")
    message: str = Field(description="The field's path and the error.")


REPLIES: dict[str, type[BaseModel]] = {
    "dev.muster.create_workload.created": WorkloadCreated,
    "dev.muster.create_workload.gave-up": GaveUp,
    "dev.muster.create_pod_groups.created": PodGroupsCreated,
    "dev.muster.gather_pods.gathered": Gathered,
    "dev.muster.patch_pods.added": Added,
    "dev.muster.patch_pods.lifted": GatesLifted,
    "dev.muster.resize_gang.resized": GangResized,
    "dev.muster.resize_gang.missing": GroupsMissing,
    "dev.muster.resize_gang.look": Look,
    "dev.muster.emit_conditions.scheduled": ConditionsWritten,
    "dev.muster.emit_conditions.waiting": ConditionsWritten,
    "dev.muster.mark_runtime.marked": RuntimeMarked,
    "dev.muster.mark_runtime.refused": PolicyRefused,
}
"""The data of every reply event, by its type."""


def schemas() -> dict[Path, str]:
    """JSON Schema (2020-12) of the data of every reply event, by file."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    found = {name: head | of.model_json_schema() | {"title": name} for name, of in REPLIES.items()}
    return {FOLDER / f"{name}.json": json.dumps(schema, indent=1) + "\n" for name, schema in found.items()}


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path, text in schemas().items():
        path.write_text(text)
