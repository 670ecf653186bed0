"""Gathered groups: the PodGroups of pods that say how many of them start together, whatever made them.

All or nothing holds at the start, at a restart and at a resumption. Beside pods that run, others join as they
come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.objects.controllers import PodController
from muster.objects.meta import ObjectMeta, ObjectRef, OwnerReference
from muster.objects.pods import Pod, PodTemplate, to_run
from muster.objects.resources import REPLICA_SETS, SchedulingApi
from muster.objects.scheduling import PodGroup
from muster.policy.group_labels import GANG, GROUP, MIN_COUNT, UID_CHARACTERS, GroupLabels
from muster.policy.model import GroupingFailure, NoOp
from muster.policy.owners.kind import OwnerObject, OwnerPodSets, PodSet, Priority
from muster.policy.reasons import Reason
from muster.policy.resolve import IdentifiedOwner, LiveOwner, ResolvedOwner, resolve
from muster.policy.sources.source import PolicySource, resolve_policy
from muster.policy.tree.members import next_min_count

SIZE = "muster.dev/size"
"""Annotation of a gathered group: the pods of the whole gang; minCount is less beside pods that run."""

CONTROLLER = "muster.dev/controller"
"""Annotation of a gathered group: apiVersion, kind, name and UID of its controller, never a ReplicaSet."""

LWS_SIZE = "leaderworkerset.sigs.k8s.io/size"
"""Annotation of the pods of a LeaderWorkerSet: how many one replica has (api/leaderworkerset/v1, v0.9.0)."""

LWS_EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
"""Annotation of a LeaderWorkerSet and its pods: workers are made when their leader has a node."""


@dataclass(frozen=True)
class GatheredPods:
    """The pods that name one PodGroup.

    Attributes:
        subject: the PodGroup.
        group: as it exists; None if it does not.
        whole: whether the controller was read; else only the group and its pods.
        controller: the controller of the pods, of a ReplicaSet its Deployment; None if of another kind.
        beside: whether another revision of the same Deployment has pods on nodes.
        sources: the policy sources, highest first; empty if they were not read.
    """

    subject: ObjectRef
    api: SchedulingApi
    group: PodGroup | None = None
    pods: tuple[Pod, ...] = ()
    whole: bool = False
    controller: PodController | None = None
    beside: bool = False
    sources: tuple[PolicySource, ...] = ()

    @property
    def staying(self) -> tuple[Pod, ...]:
        """The pods that are to run."""
        return tuple(pod for pod in self.pods if to_run(pod))

    @property
    def first(self) -> Pod | None:
        """The pod that tells the controller and the settings of the group; None if there are no pods."""
        return min(self.staying or self.pods, key=lambda pod: pod.metadata.name, default=None)

    @property
    def owner(self) -> OwnerReference | None:
        """The controller whose UID is in the name of the group.

        Any other name may be used again at once, by pods that would be in a group that goes with its owner.
        """
        owner = None if self.first is None else self.first.metadata.controller
        named = owner is not None and self.subject.name.endswith(f"-{owner.uid[:UID_CHARACTERS]}")
        return owner if named else None

    @property
    def settled(self) -> bool:
        """Whether a new pod changes nothing about the group: that was not placed yet, or is large enough."""
        group = self.group
        if group is None or group.being_deleted:
            return False
        count = group.spec.scheduling_policy.min_count
        if any(pod.bound for pod in self.staying):
            return len(self.staying) >= count
        return not group.placed and count == whole_size(group)

    @property
    def size(self) -> int:
        """The pods that start together: the label, at most those of the controller, without the finished.

        Modulo, because the pods of one round of a workflow have all succeeded when the next begins.
        """
        labels = [pod.metadata.labels.get(MIN_COUNT, "") for pod in self.pods]
        counts = {max((int(label) for label in labels if label.isdigit()), default=0), self._replicas} - {0}
        size = min(counts, default=max(1, len(self.staying)))
        return size - sum(pod.status.phase == "Succeeded" for pod in self.pods) % size

    @property
    def _replicas(self) -> int:
        """The pods of the controller, or of a replica of a LeaderWorkerSet; 0 if unknown."""
        annotated = "" if self.first is None else self.first.metadata.annotations.get(LWS_SIZE, "")
        if annotated.isdigit():
            return int(annotated)
        return self.controller.spec.replicas if self.owner is not None and self.controller is not None else 0

    @property
    def min_count(self) -> int:
        """The minCount that the group should have now.

        Surge pods beside another revision of a Deployment start as they come: that one waits for them.
        """
        size, group, live = self.size, self.group, self.staying
        bound = sum(pod.bound for pod in live)
        if self.beside:
            return min(size, max(1, bound))
        if group is None or not group.placed or not bound:
            return size
        return next_min_count(group, min(size, len(live)), bound)

    @property
    def made_by(self) -> ObjectRef:
        """The controller that Events are about; the PodGroup itself if the pods have none."""
        if self.controller is not None:
            return self.controller.ref
        return maker(self.group, self.pods) or (self.subject if self.group is None else self.group.ref)


def maker(group: PodGroup | None, pods: Iterable[Pod]) -> ObjectRef | None:
    """Return the controller of a group's pods, as noted on the group or named by a pod; None without one."""
    noted = [] if group is None else group.metadata.annotations.get(CONTROLLER, "").split()
    if group is not None and len(noted) == 4:  # noqa: PLR2004 - as gather_pods writes it
        api_version, kind, name, uid = noted
        return ObjectRef(api_version, kind, group.metadata.namespace, name, uid)
    for pod in pods:
        if pod.metadata.controller is not None:
            return pod.metadata.controller.ref_in(pod.metadata.namespace)
    return None


def names_its_gang(pod: Pod) -> bool:
    """Whether gather_pods makes the PodGroup of a pod."""
    labels = pod.metadata.labels
    return MIN_COUNT in labels and pod.pod_group_name == labels.get(GANG)


def whole_size(group: PodGroup) -> int:
    """Return the pods of the whole gang of a gathered group; 0 if it is basic."""
    size = group.metadata.annotations.get(SIZE, "")
    return int(size) if size.isdigit() else group.spec.scheduling_policy.min_count


def why_held(group: PodGroup, pods: Iterable[Pod]) -> NoOp | None:
    """Why the pods of a gathered group keep their gates; None if they do not."""
    return why_waiting(group.ref, pods, group.spec.scheduling_policy.min_count, whole_size(group))


def why_waiting(group: ObjectRef, pods: Iterable[Pod], min_count: int, size: int) -> NoOp | None:
    """Why a gang of which no pod runs is not shown to the scheduler; None if it is.

    Until all pods exist the gate shows that, while the scheduler would say nothing. After a restart it would
    bind the first few, since it counts pods that still terminate.
    """
    live = [pod for pod in pods if to_run(pod)]
    if any(pod.bound for pod in live):
        return None
    if len(live) < size:
        return NoOp(Reason.WAITING_FOR_PODS, f"{group}: {len(live)} of {size} pods exist")
    if min_count < size:
        return NoOp(Reason.WAITING_FOR_POD_GROUP, f"{group} has minCount {min_count}, its pods need {size}")
    return None


def is_of_another_revision(pod: Pod, deployment: PodController, revision: OwnerReference) -> bool:
    """Whether a pod runs for another ReplicaSet of a Deployment: during a rolling update."""
    owner, template = pod.metadata.controller, pod.metadata.labels.get("pod-template-hash")
    if owner is None or owner.kind != REPLICA_SETS.kind or owner.uid == revision.uid:
        return False
    return owner.name == f"{deployment.metadata.name}-{template}" and pod.bound and to_run(pod)


def resolved_gang(gathered: GatheredPods, pod: Pod) -> ResolvedOwner:
    """Return the gang as the only group of an owner, as if the controller were a Job, with its policy."""
    size, ref = gathered.size, gathered.made_by
    pods = PodSet(
        path=f"{ref}, pod template",
        replicated_job="",
        jobs=1,
        template=PodTemplate(metadata=ObjectMeta(labels=pod.metadata.labels), spec=pod.spec),
        parallelism=size,
        completions=size,
        indexed=False,
        labels=GroupLabels(pod.metadata.labels.get(GROUP, "main")),
        ungrouped=None,
        priority=Priority(pod.spec.priority_class_name, (pod.spec.priority, pod.spec.preemption_policy)),
    )
    metadata = ObjectMeta(name=ref.name, namespace=ref.namespace, uid=ref.uid)
    owner = OwnerObject(api_version=ref.api_version, kind=ref.kind, metadata=metadata)
    live = LiveOwner(gathered.subject, owner, owner, api=gathered.api)
    policy = resolve_policy(gathered.sources)
    return resolve(IdentifiedOwner(live, owner, OwnerPodSets(ref, "", (pods,)), policy, None, None))


def never_together(gathered: GatheredPods, pod: Pod) -> GroupingFailure | None:
    """Why the pods of a gang can never wait together, as far as it can be seen; None if they can."""
    controller, why = gathered.controller, ""
    in_order = controller is not None and controller.spec.pod_management_policy == "OrderedReady"
    if in_order and gathered.owner is not None:
        why = f"{gathered.made_by} makes its pods one after the other; podManagementPolicy: Parallel does not"
    elif LWS_EXCLUSIVE in pod.metadata.annotations:
        why = f"with {LWS_EXCLUSIVE} the workers are made when their leader has a node"
    return GroupingFailure(Reason.WAITS_FOR_ITSELF, why) if why and gathered.size > 1 else None
