"""List the owners, groups and pods of Muster that wait in a cluster, or run without a gang, and why."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import chain, count, groupby
from operator import attrgetter
from typing import Any, TypeVar

from muster.cluster.errors import ApiGone, Forbidden
from muster.cluster.interface import Cluster, Object
from muster.cluster.read import collect
from muster.objects.meta import find_condition
from muster.objects.resources import JOBS, POD_GROUPS, PODS, Resource
from muster.objects.scheduling import PLACED as GROUP_PLACED
from muster.objects.scheduling import PodGroup
from muster.objects.text import cut_to
from muster.operator.status_pods import IN_GROUP, PodOutline, PodStates, outlines
from muster.policy.group_labels import GROUP, MANAGED_BY, MUSTER
from muster.policy.groups.manifests import FALLBACK
from muster.policy.owners import KINDS, runs_as
from muster.policy.owners.kind import OwnerKind, OwnerObject
from muster.policy.reasons import Reason
from muster.policy.status.conditions import MESSAGE_LIMIT, READY, SCHEDULED

_REASON = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
"""A reason in an annotation, which anyone who may write PodGroups can set to any text."""

_UNBOUND = "spec.nodeName="
"""The field selector of pods without a node."""

_ALWAYS_SERVED = (PODS, JOBS)
"""Kinds of which a 404 means that no API server answered; the others may not be installed."""

MOST_ITEMS = 10_000
"""The most items of a status; twice as many are kept at a time. Tenants can make any number, each with a text
of kilobytes."""

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
    gated = partial(outlines, gated=True, before=len(marked))
    unmarked = lister.list(PODS, gated, labels=f"!{GROUP}", fields=_UNBOUND)
    pods = PodStates(list({(pod.namespace, pod.name): pod for pod in chain(marked, unmarked)}.values()))
    kept = _KeptItems()
    for kind in KINDS:
        (kept,) = lister.list(kind.resource, partial(_with_owners, kept, kind, pods)) or [kept]
    (kept,) = lister.list(POD_GROUPS, partial(_with_groups, kept, pods)) or [kept]
    for item in _of_pods(pods.all, kept.existing):
        kept.add_unless_named(item)
    kept.cut()
    status.items, status.left_out = kept.items, kept.left_out
    return status


def _group_of(member: Item) -> str:
    """Return the name of a PodGroup; "" for pods without one."""
    return member.name if member.what.startswith(_GROUP_PREFIX) else ""


def _shared_out(items: list[Item], most: int) -> list[Item]:
    """Return at most so many items of a sorted list: the first of each namespace, in equal shares."""
    by_namespace = groupby(items, key=lambda item: item.namespace)
    ranks = [rank for _, group in by_namespace for rank, _ in enumerate(group)]
    chosen = sorted(range(len(items)), key=ranks.__getitem__)[:most]
    return [items[index] for index in sorted(chosen)]


@dataclass
class _KeptItems:
    """What is kept of the kinds that were read: a cluster may have a million objects of each.

    Attributes:
        items: fewer than twice MOST_ITEMS.
        left_out: the number of items beyond them.
        named: namespaces and names of the groups that a condition of an owner of all their pods names; "" for
            the pods without one.
        existing: those of the PodGroups that exist and have pods.
    """

    items: list[Item] = field(default_factory=list)
    left_out: int = 0
    named: set[tuple[str, str]] = field(default_factory=set)
    existing: set[tuple[str, str]] = field(default_factory=set)

    def copy(self) -> _KeptItems:
        """Return a copy, to which a list is added that may expire and be read again."""
        return _KeptItems([*self.items], self.left_out, {*self.named}, {*self.existing})

    def add(self, item: Item) -> None:
        """Keep an item."""
        self.items.append(item)
        if len(self.items) >= 2 * MOST_ITEMS:
            self.cut()

    def add_unless_named(self, item: Item) -> None:
        """Keep the item of a group, or of pods without one, unless a condition names it."""
        if (item.namespace, _group_of(item)) not in self.named:
            self.add(item)

    def cut(self) -> None:
        """Sort the items, and leave out those that would not be shown beside further ones either."""
        self.items.sort(key=attrgetter("namespace", "since", "what", "reason"))
        shown = _shared_out(self.items, MOST_ITEMS)
        self.left_out += len(self.items) - len(shown)
        self.items = shown


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


def _with_owners(
    before: _KeptItems, kind: OwnerKind, pods: PodStates, bodies: Iterable[Object]
) -> Iterator[_KeptItems]:
    """Yield what is kept with all owners of a kind."""
    kept = before.copy()
    for item in _of_owners(kind, pods, bodies):
        kept.add(item)
        groups = pods.groups_in(item.message, item.namespace, (runs_as(kind).pod_label, item.name))
        kept.named.update((item.namespace, group) for group in groups)
    kept.cut()
    yield kept


def _with_groups(before: _KeptItems, pods: PodStates, bodies: Iterable[Object]) -> Iterator[_KeptItems]:
    """Yield what is kept with all PodGroups."""
    kept = before.copy()
    for group in map(PodGroup.read, bodies):
        if pods.have_group(group.metadata.namespace, group.metadata.name):
            kept.existing.add((group.metadata.namespace, group.metadata.name))
        item = _of_group(group, pods)
        if item is not None:
            kept.add_unless_named(item)
    kept.cut()
    yield kept


def _of_owners(kind: OwnerKind, pods: PodStates, bodies: Iterable[Object]) -> Iterator[Item]:
    """Yield the conditions of Muster with status False of the owners that are still to run."""
    for body in bodies:
        owner = kind.view.read(body)
        if owner.finished or owner.being_deleted:
            continue
        ready, scheduled = (_if_false(kind, owner, name) for name in (READY, SCHEDULED))
        run = pods.run(owner.metadata.namespace, runs_as(kind).pod_label, owner.metadata.name)
        state = State.NO_GANG if run and ready is not None else State.WAITING
        if ready is not None and (scheduled is None or ready.get("reason") != scheduled.get("reason")):
            yield _of_condition(body, ready, state)
        if scheduled is not None:
            yield _of_condition(body, scheduled, state)


def _if_false(kind: OwnerKind, owner: OwnerObject, name: str) -> Mapping[str, Any] | None:
    condition = find_condition(owner.status.conditions, f"{kind.condition_prefix}{name}")
    return condition if condition is not None and condition.get("status") == "False" else None


def _of_condition(body: Object, condition: Mapping[str, Any], state: State) -> Item:
    metadata = body["metadata"]
    return Item(
        metadata.get("namespace", ""),
        f"{body['kind'].lower()}/{metadata['name']}",
        state,
        condition.get("lastTransitionTime") or "",
        condition.get("reason") or "",
        condition.get("message") or "",
    )


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
    by_group = attrgetter("namespace", "group")
    for (namespace, group), members in groupby(sorted(pods, key=by_group), key=by_group):
        orphaned = bool(group) and (namespace, group) not in existing
        waiting = [(pod.created, pod.name) for pod in members if not pod.bound and (pod.gated or orphaned)]
        if not waiting:
            continue
        since, oldest = min(waiting)
        count = f"{len(waiting)} pod{'' if len(waiting) == 1 else 's'}"
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
