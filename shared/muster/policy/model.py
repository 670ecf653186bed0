"""The nouns of a decision: what was observed, and what shall be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from muster.objects.jobs import Job, JobSet, Namespace, Pod, TrainJob
from muster.objects.meta import ObjectRef
from muster.objects.patches import PatchType
from muster.objects.scheduling import CompositePodGroup, PodGroup, PriorityClass, Workload
from muster.objects.versions import SchedulingApi
from muster.policy.reasons import Reason

Owner = TrainJob | JobSet | Job
"""What a person created and what owns all that Muster makes for it."""


class Verb(StrEnum):
    """What an action does to an object, as RBAC spells it."""

    CREATE = "create"
    UPDATE = "update"
    PATCH = "patch"
    DELETE = "delete"


@dataclass(frozen=True)
class Action:
    """One write.

    Attributes:
        verb: what is done.
        target: to which object; a UID in it is a precondition of a deletion.
        body: the object to create, the whole object as it shall be, or the patch; None for a deletion.
        patch: the media type of a patch.
        operations: of a JSON patch, which has no body.
        subresource: "status", or "" for the object itself.
        if_refused: done instead when the API server will never accept this (403, 422), so that no stamped
            pod is left without a group; the server's words are put in for `{refusal}` in their messages.
        optional: losing it costs nothing but a message; its failure does not stop the plan (Events).
    """

    verb: Verb
    target: ObjectRef
    body: Mapping[str, Any] | None = None
    patch: PatchType | None = None
    subresource: str = ""
    if_refused: tuple[Action, ...] = ()
    optional: bool = False
    operations: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Reply:
    """The CloudEvent a step answers with once its plan was carried out: `dev.muster.<step>.<what>`."""

    what: str
    owner: ObjectRef
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Writes, in order, and why.

    Attributes:
        come_again: the writes only clear the way; the event must be delivered again.
    """

    reason: Reason
    message: str
    actions: tuple[Action, ...]
    reply: Reply | None = None
    come_again: bool = False


@dataclass(frozen=True)
class Nothing:
    """No write, and why.

    Attributes:
        come_again: not yet; the event must be delivered again.
    """

    reason: Reason
    message: str = ""
    come_again: bool = False


Decision = Plan | Nothing


class HomeKind(StrEnum):
    """The homes of a policy, highest first; below them is the built-in default."""

    STORED = "stored"
    """In the Workload that was made under it: whatever changes elsewhere counts for the next owner."""
    UPSTREAM = "upstream"
    """No policy of ours: the runtime asks the Trainer, JobSet or the Job controller for their own groups."""
    OWNER = "owner"
    RUNTIME = "runtime"
    RUNTIME_SPEC = "runtime spec"
    NAMESPACE = "namespace"


@dataclass(frozen=True)
class Home:
    """One place where a policy stands.

    Attributes:
        kind: which of the homes.
        where: in words, for messages: `annotation muster.dev/pod-group-policy of TrainJob team-a/llama`.
        content: YAML text, or the parsed field of a runtime.
    """

    kind: HomeKind
    where: str
    content: str | Mapping[str, Any]


@dataclass(frozen=True)
class Observed:
    """What a step read before it decides; what it did not need to read stays empty.

    Attributes:
        subject: the object the event was about.
        owner: the root owner, live; None when it is gone.
        jobset: the owner itself, or the JobSet of a TrainJob; None while there is none.
        jobs: the Jobs of the JobSet, or the Job itself.
        namespace: the namespace of the owner; None when it is gone.
        workload: the Workload under the name that Muster would give it.
        other_workloads: Workloads of the namespace that Muster did not make.
        homes: the policies that stand somewhere for the owner, highest home first.
        priority_classes: those of the cluster, where the owner's pods have several; else not read.
        composites: CompositePodGroups under the names the owner's composite groups have.
        groups: PodGroups under the names the owner's groups have, whoever made them.
        pods: pods of the owner.
        leftover_owner_lives: whether the owner that the Workload under our name belongs to still exists.
        scheduling: what the API server serves.
        orphan: a Workload or group of Muster's that a sweep asks about.
        live_uids: UIDs of all TrainJobs, JobSets and Jobs of its namespace.
        runtime: a (Cluster)TrainingRuntime as parsed JSON, whole, because it is put back whole.
        event_names: those of the Events about it.
        failed_create: the latest words of a Job's FailedCreate Event, while pods are missing.
    """

    subject: ObjectRef
    owner: Owner | None = None
    jobset: JobSet | None = None
    jobs: tuple[Job, ...] = ()
    namespace: Namespace | None = None
    workload: Workload | None = None
    other_workloads: tuple[Workload, ...] = ()
    homes: tuple[Home, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    composites: tuple[CompositePodGroup, ...] = ()
    groups: tuple[PodGroup, ...] = ()
    pods: tuple[Pod, ...] = ()
    leftover_owner_lives: bool = False
    scheduling: SchedulingApi = field(default_factory=SchedulingApi)
    orphan: Workload | CompositePodGroup | PodGroup | None = None
    live_uids: frozenset[str] = frozenset()
    failed_create: str = ""
    runtime: Mapping[str, Any] | None = None
    event_names: frozenset[str] = frozenset()
