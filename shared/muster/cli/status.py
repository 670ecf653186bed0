"""`muster status`: list what waits or runs without a gang, since when, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache, partial
from operator import attrgetter

import click

from muster.cli.advice import CREATED_BEFORE, gang_shaped, why_unmarked
from muster.cli.check import first_names
from muster.cli.cluster import KubeconfigOptions, cluster_options, connected, namespace_options
from muster.cli.common import age, echo_data, echo_table, output_option
from muster.cli.health import read_health
from muster.cluster.errors import ApiGone, Forbidden
from muster.cluster.interface import Cluster, Objects
from muster.cluster.versioned import Versioned
from muster.objects.meta import ObjectRef, find_condition
from muster.objects.pods import Pod, PodTemplate, to_run
from muster.objects.resources import POD_GROUPS, PODS, Resource
from muster.objects.scheduling import PLACED as GROUP_PLACED
from muster.objects.scheduling import PodGroup
from muster.objects.text import counted
from muster.policy.group_labels import GATE, GROUP, MANAGED_BY, MUSTER, OPTED_OUT, is_gathered
from muster.policy.groups.gathered import maker
from muster.policy.groups.manifests import FALLBACK
from muster.policy.owners import KINDS, parent_of, runs_as
from muster.policy.owners.job import JobSpec, JobTemplate, grouped_by_others
from muster.policy.owners.kind import OwnerKind, OwnerObject
from muster.policy.reasons import Reason
from muster.policy.status.conditions import READY, SCHEDULED, stored_condition
from muster.policy.status.group_status import status_of_gathered, with_shortfall


class State(StrEnum):
    """Whether something waits, or runs in another way than as a gang."""

    WAITING = "Waiting"
    NO_GANG = "NoGang"


HEADS = {State.WAITING: "WAITS", State.NO_GANG: "RUNS WITHOUT GANG"}
"""The heading of the objects of a state; each state has a table of its own."""


@dataclass(frozen=True)
class Item:
    """An owner, group or pod that waits or runs without a gang; `muster status -o json` prints these fields.

    Attributes:
        what: the object, as `job/llama`.
        since: RFC 3339; "" if unknown.
        reason: a `muster.policy.reasons.Reason`, or the scheduler's; "" if unknown.
    """

    namespace: str
    what: str
    state: State
    since: str
    reason: str
    message: str


@dataclass
class ClusterStatus:
    """What waits or runs without a gang, oldest first, and why which kinds could not be listed.

    Attributes:
        no_gangs: jobs with pending pods that Muster does not group, by the reason.
    """

    items: list[Item] = field(default_factory=list)
    no_gangs: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    not_read: dict[str, str] = field(default_factory=dict)


@click.command("status")
@namespace_options
@output_option
@cluster_options
def command(namespace: str, output: str, options: KubeconfigOptions, *, everywhere: bool) -> None:
    """List what waits for a PodGroup or for room, and what runs without a gang, since when, and why.

    Looks at the conditions that Muster writes on TrainJobs, JobSets and Jobs, at fallback PodGroups, and at
    pods that are held by Muster's gate or belong to a PodGroup that does not exist. Nothing is written.

    At the end it says which jobs with pending pods are no gangs, and whether Muster is installed.

    Exits with 1 if a kind could not be listed, so that nothing is known of it, or if Muster is installed in
    part. What of Muster's own objects you may not read is named, and changes no exit status.
    """
    with connected(options, "status") as cluster:
        place = cluster.place(namespace, everywhere=everywhere)
        reader = Versioned(cluster.client)
        status, health = read_status(reader, place), read_health(reader, place)
    if output == "text":
        _print(status, place)
    else:
        echo_data([asdict(item) for item in status.items], output)
    for why, names in status.no_gangs.items():
        click.echo(f"pending, but no gang: {first_names(names, 5)}: {why}", err=output != "text")
    click.echo(health, err=output != "text")
    for kind, message in status.not_read.items():
        click.echo(f"muster: {kind} could not be read: {message}", err=True)
    if status.not_read or health.broken:
        raise SystemExit(1)


def read_status(cluster: Cluster, namespace: str = "") -> ClusterStatus:
    """Return what waits or runs without a gang; "" means all namespaces.

    A group or pod is only listed if the owner of its pods is not: before emit_conditions has written
    conditions, for example, or after the owner was deleted.

    Raises:
        ClusterError: the API server does not answer.
    """
    status = ClusterStatus()

    def listed(resource: Resource, *, labels: str = "", fields: str = "") -> Objects:
        try:
            return cluster.list(resource, namespace, labels=labels, fields=fields)
        except Forbidden as error:
            status.not_read[resource.plural] = error.message
        except ApiGone:  # TrainJobs and JobSets need not be installed
            pass
        return []

    marked = list(map(Pod.read, listed(PODS, labels=GROUP)))
    others = list(map(Pod.read, listed(PODS, labels=f"!{GROUP}", fields="spec.nodeName=")))
    pods = _Pods([*marked, *(pod for pod in others if GATE in pod.gates)])
    ungrouped = _Pods(filter(_is_ungrouped, [*marked, *others]))
    unmarked = cache(partial(why_unmarked, cluster))
    for kind in KINDS:
        for owner in map(kind.view.read, listed(kind.resource)):
            status.items += _of_owner(kind, owner, pods)
            for why in _why_no_gang(owner, ungrouped.of(kind, owner), unmarked):
                status.no_gangs[why].append(f"{_name_of(owner.ref)} ({owner.metadata.namespace})")
    groups = {
        (one.metadata.namespace, one.metadata.name): one for one in map(PodGroup.read, listed(POD_GROUPS))
    }
    for place, group in groups.items():
        if place not in pods.of_group or pods.unexplained(place):
            status.items += _of_group(group, pods.of_group.get(place, []))
    for place in pods.of_group:
        status.items += _of_pods(*place, pods.unexplained(place), groups.get(place))
    status.items.sort(key=attrgetter("namespace", "since", "what", "reason"))
    return status


class _Pods:
    """The pods that are still to end.

    Attributes:
        of_group: by namespace and name of the PodGroup; "" for pods without one.
        of_owner: by namespace, and label and value by which the pods of the owner are found.
        explained: the UIDs of the pods of owners that are listed.
    """

    def __init__(self, pods: Iterable[Pod]) -> None:
        self.of_group: defaultdict[tuple[str, str], list[Pod]] = defaultdict(list)
        self.of_owner: defaultdict[tuple[str, str, str], list[Pod]] = defaultdict(list)
        self.explained: set[str] = set()
        for pod in pods:
            if to_run(pod):
                self.of_group[pod.metadata.namespace, pod.pod_group_name].append(pod)
                for label in {runs_as(kind).pod_label for kind in KINDS} & set(pod.metadata.labels):
                    self.of_owner[pod.metadata.namespace, label, pod.metadata.labels[label]].append(pod)

    def of(self, kind: OwnerKind, owner: OwnerObject) -> list[Pod]:
        """Return the pods of an owner."""
        return self.of_owner[owner.metadata.namespace, runs_as(kind).pod_label, owner.metadata.name]

    def unexplained(self, place: tuple[str, str]) -> list[Pod]:
        """Return the pods of a group without those of listed owners."""
        return [pod for pod in self.of_group[place] if pod.metadata.uid not in self.explained]


def _name_of(ref: ObjectRef) -> str:
    return f"{ref.kind.lower()}/{ref.name}"


def _state(pods: Sequence[Pod]) -> State:
    return State.NO_GANG if pods and all(pod.bound for pod in pods) else State.WAITING


def _of_owner(kind: OwnerKind, owner: OwnerObject, pods: _Pods) -> Iterator[Item]:
    """Yield the conditions of Muster with status False, if the owner is still to run."""
    if owner.finished or owner.being_deleted:
        return
    members, found = pods.of(kind, owner), (stored_condition(owner, name) for name in (READY, SCHEDULED))
    ready, scheduled = (one if one.get("status") == "False" else None for one in found)
    state = _state(members) if ready else State.WAITING
    if ready and scheduled and ready.get("reason") == scheduled.get("reason"):
        ready = None
    for condition in filter(None, (ready, scheduled)):
        pods.explained |= {pod.metadata.uid for pod in members}
        texts = (condition.get(name) or "" for name in ("lastTransitionTime", "reason", "message"))
        yield Item(owner.metadata.namespace, _name_of(owner.ref), state, *texts)


def _is_ungrouped(pod: Pod) -> bool:
    """Whether a pod waits without a group, and would be Muster's to group."""
    job = JobTemplate(spec=JobSpec(template=PodTemplate(metadata=pod.metadata, spec=pod.spec)))
    unlabelled = pod.metadata.labels.get(GROUP, OPTED_OUT) == OPTED_OUT
    return unlabelled and not pod.bound and GATE not in pod.gates and grouped_by_others(job) is None


def _why_no_gang(owner: OwnerObject, members: Sequence[Pod], unmarked: Callable[[str], str]) -> Iterator[str]:
    """Yield why pods of an owner wait without a group, if it would be a gang by its shape."""
    if parent_of(owner) is None and gang_shaped(owner):
        if any(GROUP in pod.metadata.labels for pod in members):
            yield f"opted out by the label {GROUP}: {OPTED_OUT}"
        if any(GROUP not in pod.metadata.labels for pod in members):
            yield unmarked(owner.metadata.namespace) or CREATED_BEFORE


def _of_group(group: PodGroup, pods: Sequence[Pod]) -> Iterator[Item]:
    """Yield the entry of a fallback PodGroup, or of a group that waits, by the name of who made its pods."""
    metadata, gathered = group.metadata, is_gathered(group.metadata.labels)
    if gathered and not pods:
        return
    shown, since = group.ref, metadata.creation_timestamp
    if gathered:
        shown, since = maker(group, pods) or shown, min(pod.metadata.creation_timestamp for pod in pods)
    entry = partial(Item, metadata.namespace, _name_of(shown))
    reason, _, message = metadata.annotations.get(FALLBACK, "").partition(": ")
    if reason:
        yield entry(_state(pods), since, reason, f"a fallback PodGroup, no gang: {message}")
    elif gathered:
        told = status_of_gathered(group, pods)
        if told.reason != Reason.SCHEDULED:
            yield entry(State.WAITING, since, told.reason, told.message)
    elif metadata.labels.get(MANAGED_BY) == MUSTER and group.refusal is not None:
        condition = find_condition(group.status.conditions, GROUP_PLACED) or {}
        reason, message = group.refusal
        since = condition.get("lastTransitionTime") or ""
        yield entry(State.WAITING, since, reason, with_shortfall(message, pods))


def _of_pods(namespace: str, group: str, pods: Sequence[Pod], existing: PodGroup | None) -> Iterator[Item]:
    """Yield an entry if pods of a group have Muster's gate, or the group does not exist."""
    if existing is not None and is_gathered(existing.metadata.labels):
        return  # told already
    orphaned = bool(group) and existing is None
    waiting = [pod for pod in pods if not pod.bound and (GATE in pod.gates or orphaned)]
    if not waiting:
        return
    oldest = min((pod.metadata for pod in waiting), key=attrgetter("creation_timestamp", "name"))
    what, reason = f"podgroup/{group}", Reason.SCHEDULING_GATED
    message = counted(len(waiting), "pod")
    if not group:
        what, reason = f"pod/{oldest.name}", Reason.API_NOT_SERVED
        message += " with Muster's gate and no group: the API server dropped the field schedulingGroup"
    elif orphaned:
        reason = Reason.WAITING_FOR_POD_GROUP
        message += " of a PodGroup that does not exist"
    else:
        message += " with Muster's gate"
    yield Item(namespace, what, State.WAITING, oldest.creation_timestamp, reason, message)


def _print(status: ClusterStatus, namespace: str) -> None:
    now = datetime.now(UTC)  # noqa: TID251 - a command uses the real time
    tables = 0
    for state, head in HEADS.items():
        rows = [
            (item.namespace, item.what, age(item.since, now), item.reason, item.message)
            for item in status.items
            if item.state is state
        ]
        if rows:
            click.echo("\n" if tables else "", nl=False)
            echo_table(("NAMESPACE", head, "FOR", "REASON", "MESSAGE"), rows)
            tables += 1
    if not (status.items or status.no_gangs or status.not_read):
        place = f"in namespace {namespace}; -A looks at all" if namespace else "in any namespace"
        click.echo(f"nothing is waiting {place}")
