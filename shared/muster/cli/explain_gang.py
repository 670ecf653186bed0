"""`muster explain` of pods of any controller that say how many start together."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from muster.cli.common import CommandError
from muster.cluster.interface import Cluster
from muster.cluster.observe.gathered import gathered_groups, read_gathered
from muster.objects.text import counted
from muster.policy.group_labels import MIN_COUNT
from muster.policy.groups.gathered import GatheredPods, resolved_gang, whole_size
from muster.policy.groups.manifests import FALLBACK
from muster.policy.status.group_status import status_of_gathered
from muster.replay.plans import as_lines, decide
from muster.runtime import steps


def explain_gang(
    cluster: Cluster, kind: str, name: str, namespace: str, now: datetime, *, verbose: bool
) -> str:
    """Return the explanation of the gangs of a controller, or of a PodGroup, by its kind in lowercase.

    Raises:
        CommandError: no pods of that controller have the label.
    """
    gangs = [read_gathered(cluster, ref) for ref in gathered_groups(cluster, namespace)]
    wanted = f"{kind.removesuffix('s')} {namespace}/{name}".lower()
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
        yield from (f"  {line}" for line in as_lines(step, decide(step, gang.subject, cluster, now)))
