"""List the owners, groups and pods of Muster that wait in a cluster, or run without a gang, and why."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache, partial
from itertools import chain, count, groupby
from typing import Any, TypeVar

from muster.cluster.errors import ApiGone, Forbidden
from muster.cluster.interface import Cluster, Object
from muster.cluster.read import collect
from muster.objects.meta import find_condition
from muster.objects.resources import JOBS, POD_GROUPS, PODS, Resource
from muster.objects.scheduling import PLACED as GROUP_PLACED
from muster.objects.scheduling import PodGroup
from muster.objects.text import cut_to
from muster.operator.status_pods import IN_GROUP, PodOutline, PodStates, gated_outlines, outlines
from muster.policy.group_labels import GROUP, MANAGED_BY, MUSTER
from muster.policy.owner_status.conditions import MESSAGE_LIMIT, READY, SCHEDULED
from muster.policy.owners import KINDS, runs_as
from muster.policy.owners.kind import OwnerKind, OwnerObject
from muster.policy.plans.manifests import FALLBACK
from muster.policy.reasons import Reason

# The messages that are searched are written by the function emit_conditions, which names PodGroups and pods.
_NAME = re.compile(r"[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?")
"""A DNS subdomain in a condition message, which may be the name of an object."""

_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
"""A reason in an annotation, which anyone who may write PodGroups can set to any text."""

_UNBOUND = "spec.nodeName="
"""The field selector of pods without a node."""

_ALWAYS_SERVED = (PODS, JOBS)
"""Kinds of which a 404 means that no API server answered; the others may not be installed."""

MOST_ITEMS = 10_000
"""The most items of a status: tenants can make any number, each with a text of kilobytes."""

WHOLE_MESSAGES, SHORT_MESSAGE = 20_000, 200
"""The most long messages that are kept, and the characters of all others: in a cluster with 150,000 fallback
PodGroups, each with an emoji in 2 KB of text, they take more than a gigabyte."""

_LONGEST = {"since": 64, "reason": 128, "message": MESSAGE_LIMIT}
"""The most characters of the texts of an item: tenants can write megabytes."""

_GROUP_PREFIX = "podgroup/"
_Found = TypeVar("_Found")


class State(StrEnum):
    """Whether something waits, or runs in another way than as a gang."""

    WAITING = "Waiting"
    NO_GANG = "NoGang"


@dataclass(frozen=True)
class Item:
    """An owner, group or pod that waits or runs without a gang; `muster status -o json` prints these fields.

    Attributes:
        namespace: of the object.
        what: the object, as `job/llama`.
        state: whether its pods wait, or run one by one.
        since: RFC 3339; "" if unknown.
        reason: a `muster.policy.reasons.Reason`, or the scheduler's; "" if unknown.
        message: the message of the condition, or what it waits for.

    The last three are cut to _LONGEST.
    """

    namespace: str
    what: str
    state: State
    since: str
    reason: str
    message: str

    def __post_init__(self) -> None:
        """Cut the texts."""
        for name, most in _LONGEST.items():
            object.__setattr__(self, name, cut_to(getattr(self, name), most))

    @property
    def name(self) -> str:
        """`llama` of `job/llama`."""
        return self.what.partition("/")[2]


@dataclass
class ClusterStatus:
    """The owners, PodGroups and pods of a cluster or namespace that wait or run without a gang.

    Attributes:
        items: sorted by namespace and then by time, oldest first.
        not_read: the kinds that may not be listed, with the API server's message.
        left_out: the number of items beyond MOST_ITEMS.
    """

    items: list[Item] = field(default_factory=list)
    not_read: dict[str, str] = field(default_factory=dict)
    left_out: int = 0


def read_status(
    cluster: Cluster, namespace: str = "", *, reading: Callable[[str], object] = lambda _kind: None
) -> ClusterStatus:
    """Return what waits or runs without a gang; "" means all namespaces.

    A group or pod is only listed if no owner of all its pods names it in a condition message: before
    emit_conditions has run, or where that function is not installed.

    Args:
        cluster: where to look.
        namespace: the only one to look at.
        reading: called with the name of each kind before it is listed, and with the number of each object,
            which may have a megabyte.

    Raises:
        ClusterError: the API server does not answer, or does not serve pods.
    """
    status = ClusterStatus()
    lister = _Lister(cluster, namespace, status.not_read, reading)
    # A gated pod waits even if its group label was removed. Of the others only the unbound ones are read.
    marked = lister.list(PODS, outlines, labels=GROUP)
    unmarked = lister.list(PODS, gated_outlines, labels=f"!{GROUP}", fields=_UNBOUND)
    found = [*marked, *unmarked]
    pods = PodStates(list({(pod.namespace, pod.name): pod for pod in found}.values()))
    cut = _Messages().cut
    by_kind = {kind: lister.list(kind.resource, partial(_of_owners, kind, pods, cut)) for kind in KINDS}
    groups = dict(lister.list(POD_GROUPS, partial(_of_groups, pods, cut)))
    members = [*filter(None, groups.values()), *_of_pods(pods.all, groups.keys())]
    messages: dict[tuple[str, str, str], list[str]] = {}
    for kind, owners in by_kind.items():
        for owner in owners:
            key = (owner.namespace, runs_as(kind).pod_label, owner.name)
            messages.setdefault(key, []).append(owner.message)
    unnamed = [
        member
        for member in members
        if not any(
            member.name in message and member.name in _names_in(message)
            for owner in pods.owners_of(member.namespace, _group_of(member))
            for message in messages.get((member.namespace, *owner), ())
        )
    ]
    items = sorted(
        [*chain(*by_kind.values()), *unnamed],
        key=lambda item: (item.namespace, item.since, item.what, item.reason),
    )
    status.items = _shared_out(items, MOST_ITEMS)
    status.left_out = len(items) - len(status.items)
    return status


def _group_of(member: Item) -> str:
    """Return the name of a PodGroup; "" for pods without one."""
    return member.name if member.what.startswith(_GROUP_PREFIX) else ""


@lru_cache(maxsize=64)
def _names_in(message: str) -> frozenset[str]:
    """Return the names in a message; kept for the other groups of its owner."""
    return frozenset(_NAME.findall(message))


def _shared_out(items: list[Item], most: int) -> list[Item]:
    """Return at most so many items of a sorted list: the first of each namespace, in equal shares."""
    by_namespace = groupby(items, key=lambda item: item.namespace)
    ranks = [rank for _, group in by_namespace for rank, _ in enumerate(group)]
    chosen = sorted(range(len(items)), key=ranks.__getitem__)[:most]
    return [items[index] for index in sorted(chosen)]


class _Messages:
    """Cuts the messages of a status, of all kinds together, beyond the first WHOLE_MESSAGES long ones."""

    def __init__(self) -> None:
        self._whole = 0

    def cut(self, message: str) -> str:
        """Return a message, or its beginning."""
        if len(message) <= SHORT_MESSAGE:
            return message
        self._whole += 1
        return cut_to(message, MESSAGE_LIMIT if self._whole <= WHOLE_MESSAGES else SHORT_MESSAGE)


@dataclass(frozen=True)
class _Lister:
    """Lists kinds, and notes those that may not be listed."""

    cluster: Cluster
    namespace: str
    not_read: dict[str, str]
    reading: Callable[[str], object]

    def list(
        self,
        resource: Resource,
        view: Callable[[Iterable[Object]], Iterable[_Found]],
        *,
        labels: str = "",
        fields: str = "",
    ) -> list[_Found]:
        """Return everything that `view` yields from a kind; nothing if it is forbidden or not installed."""
        self.reading(resource.plural)
        number = count(1)

        def shown(objects: Iterable[Object]) -> Iterator[Object]:
            for body in objects:
                self.reading(f"{resource.plural}: {next(number)}")
                yield body

        def viewed(objects: Iterable[Object]) -> Iterable[_Found]:
            return view(shown(objects))

        try:
            return collect(self.cluster, resource, viewed, self.namespace, labels=labels, fields=fields)
        except Forbidden as error:
            self.not_read[resource.plural] = error.message
        except ApiGone:
            if resource in _ALWAYS_SERVED:
                raise
        return []


def _of_owners(
    kind: OwnerKind, pods: PodStates, cut: Callable[[str], str], bodies: Iterable[Object]
) -> Iterator[Item]:
    """Yield the conditions of Muster with status False of the owners that are still to run."""
    for body in bodies:
        owner = kind.view.read(body)
        if owner.finished or owner.being_deleted:
            continue
        ready, scheduled = (_if_false(kind, owner, name) for name in (READY, SCHEDULED))
        run = pods.run(owner.metadata.namespace, runs_as(kind).pod_label, owner.metadata.name)
        state = State.NO_GANG if run and ready is not None else State.WAITING
        if ready is not None and (scheduled is None or ready.get("reason") != scheduled.get("reason")):
            yield _of_condition(body, ready, state, cut)
        if scheduled is not None:
            yield _of_condition(body, scheduled, state, cut)


def _if_false(kind: OwnerKind, owner: OwnerObject, name: str) -> Mapping[str, Any] | None:
    condition = find_condition(owner.status.conditions, f"{kind.condition_prefix}{name}")
    return condition if condition is not None and condition.get("status") == "False" else None


def _of_condition(
    body: Object, condition: Mapping[str, Any], state: State, cut: Callable[[str], str]
) -> Item:
    metadata = body["metadata"]
    return Item(
        metadata.get("namespace", ""),
        f"{body['kind'].lower()}/{metadata['name']}",
        state,
        condition.get("lastTransitionTime") or "",
        condition.get("reason") or "",
        cut(condition.get("message") or ""),
    )


def _of_groups(
    pods: PodStates, cut: Callable[[str], str], bodies: Iterable[Object]
) -> Iterator[tuple[tuple[str, str], Item | None]]:
    """Yield namespace and name of each group, with its entry if it has one."""
    for group in map(PodGroup.read, bodies):
        entry = _of_group(group, pods)
        if entry is not None:
            entry = replace(entry, message=cut(entry.message))
        yield (group.metadata.namespace, group.metadata.name), entry


def _of_group(group: PodGroup, pods: PodStates) -> Item | None:
    """Return the entry of a basic group in place of a failed policy, or of a group that has no room."""
    metadata = group.metadata
    name, fallback = f"{_GROUP_PREFIX}{metadata.name}", metadata.annotations.get(FALLBACK)
    if fallback is not None:
        reason, _, message = fallback.partition(": ")
        if not _REASON.fullmatch(reason):
            reason, message = "", fallback
        run = pods.run(metadata.namespace, IN_GROUP, metadata.name)
        return Item(
            metadata.namespace,
            name,
            State.NO_GANG if run else State.WAITING,
            metadata.creation_timestamp,
            reason,
            f"a fallback PodGroup, no gang: {message}",
        )
    if metadata.labels.get(MANAGED_BY) == MUSTER and group.refusal is not None:
        reason, message = group.refusal
        condition = find_condition(group.status.conditions, GROUP_PLACED) or {}
        since = condition.get("lastTransitionTime") or ""
        return Item(metadata.namespace, name, State.WAITING, since, reason, message)
    return None


def _of_pods(pods: Iterable[PodOutline], existing: Collection[tuple[str, str]]) -> Iterator[Item]:
    """Yield an entry per group whose pods have Muster's gate, or whose PodGroup does not exist.

    Args:
        pods: those that are still to end.
        existing: namespaces and names of the PodGroups.
    """
    by_group: defaultdict[tuple[str, str, bool], list[tuple[str, str]]] = defaultdict(list)
    for pod in pods:
        orphaned = bool(pod.group) and (pod.namespace, pod.group) not in existing
        if not pod.bound and (pod.gated or orphaned):
            by_group[pod.namespace, pod.group, orphaned].append((pod.created, pod.name))
    for (namespace, group, orphaned), members in by_group.items():
        since, oldest = min(members)
        count = f"{len(members)} pod{'' if len(members) == 1 else 's'}"
        what, reason, message = _why_gated(group, count, oldest, orphaned=orphaned)
        yield Item(namespace, what, State.WAITING, since, reason, message)


def _why_gated(group: str, count: str, oldest: str, *, orphaned: bool) -> tuple[str, Reason, str]:
    """Return what waits, the reason and the message of pods with Muster's gate, or without their group."""
    if not group:
        message = f"{count} with Muster's gate and no group: the API server dropped the field schedulingGroup"
        return f"pod/{oldest}", Reason.API_NOT_SERVED, message
    if orphaned:
        message = f"{count} of a PodGroup that does not exist"
        return f"{_GROUP_PREFIX}{group}", Reason.WAITING_FOR_POD_GROUP, message
    return f"{_GROUP_PREFIX}{group}", Reason.SCHEDULING_GATED, f"{count} with Muster's gate"
