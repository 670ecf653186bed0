"""`muster explain` of pods of any controller that say how many start together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from muster.cli.common import CommandError
from muster.cluster.interface import Cluster
from muster.cluster.observe.gathered import gathered_groups, read_gathered
from muster.objects.text import counted
from muster.policy.group_labels import MIN_COUNT
from muster.policy.groups.gathered import GatheredPods, resolved_gang, whole_size
from muster.policy.groups.manifests import FALLBACK
from muster.policy.model import Plan
from muster.policy.owners import KINDS
from muster.policy.status.group_status import status_of_gathered
from muster.runtime import steps

_OWNERS = {name for kind in KINDS for name in (kind.resource.kind.lower(), kind.resource.plural)}


def named_gang(targets: Sequence[str]) -> tuple[str, str] | None:
    """Return kind and name of `KIND/NAME` or `KIND NAME`; None for an owner that Muster knows, or no name."""
    kind, _, name = "/".join(targets).lower().partition("/")
    kind = kind.partition(".")[0]
    return (kind, name) if kind.isalpha() and kind not in _OWNERS and name and "/" not in name else None


def explain_gang(
    cluster: Cluster, kind: str, name: str, namespace: str, now: datetime, *, verbose: bool
) -> str:
    """Return the explanation of the gangs of a controller, or of a PodGroup, by its kind in lowercase.

    Raises:
        CommandError: no pods of that controller have the label.
    """
    gangs = [read_gathered(cluster, ref) for ref in gathered_groups(cluster, namespace)]
    wanted = f"{kind.removesuffix('s')} {namespace}/{name}"
    chosen = [gang for gang in gangs if wanted in f"{gang.subject}, {gang.made_by}".lower().split(", ")]
    if not chosen:
        raise CommandError(f"{kind} {namespace}/{name}: has no pods with the label {MIN_COUNT}")
    return "".join(f"{line}\n" for gang in chosen for line in _lines(cluster, gang, now, verbose=verbose))


def _lines(cluster: Cluster, gang: GatheredPods, now: datetime, *, verbose: bool) -> Iterator[str]:
    group, pod = gang.group, gang.first
    if group is None:
        yield f"{gang.made_by}: waits, WaitingForPodGroup"
    else:
        told, fallback = status_of_gathered(group, gang.pods), group.metadata.annotations.get(FALLBACK)
        yield f"{gang.made_by}: {f'no gang: {fallback}' if fallback else told.reason}"
        yield f"  now: {told.message}"
    if pod is not None:
        count = "" if group is None else f", minCount {group.spec.scheduling_policy.min_count}"
        size = gang.size if group is None else whole_size(group)
        yield f"  {gang.subject}: {counted(size, 'pod')} together{count}; {len(gang.pods)} exist"
        yield f"  policy: {resolved_gang(gang, pod).policy.where}"
    for name in ("gather_pods", "patch_pods") if verbose else ():
        step = steps.step_named(name)
        decision = step.plan(step.observe(cluster, gang.subject), now)
        yield f"  {name}: {decision.reason}: {decision.message}"
        for action in decision.actions if isinstance(decision, Plan) else ():
            yield f"    {action.verb} {action.target}"
