"""A sweep: the step is run on everything it is responsible for, so that lost events are made good."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from hashlib import sha256

from shared.cluster.port import Cluster
from shared.events.model import Sweep
from shared.objects.meta import ObjectRef
from shared.runtime import logs
from shared.runtime.bounded import BoundedCluster
from shared.runtime.outcome import Kind, Outcome
from shared.runtime.step import Step

SWEPT = "Swept"
"""The reason of a sweep's own outcome; the message counts the reasons of its objects."""


def sweep(
    step: Step,
    cluster: BoundedCluster,
    event: Sweep,
    limit: int,
    run: Callable[[Cluster, ObjectRef], Outcome],
) -> Outcome:
    """Run a step on all it is responsible for.

    One object that fails does not stop the others, and does not make the sweep come again: the next one comes
    anyway. Whatever was done or went wrong has a line of its own in the log. There is no reply event, because
    an answer is one event at most and a sweep does many things: who must not miss one watches the objects.

    Args:
        step: the step.
        cluster: where; the sweep ends when its time is over.
        event: its id also says where to begin, see below.
        limit: the most objects to look at. Where there are more, or the time is over before the end, each
            sweep begins elsewhere, so that all have their turn.
        run: runs the step on one object.

    Raises:
        ClusterError: what the step is responsible for cannot be listed.
    """
    cluster.refresh()
    found = list(step.responsible_for(cluster))
    begin = _anywhere(event.id, len(found))
    subjects = [*found[begin:], *found[:begin]][:limit]
    reasons: Counter[str] = Counter()
    actions = 0
    for subject in subjects:
        if cluster.time_is_over:
            break
        outcome = run(cluster, subject)
        reasons[str(outcome.reason)] += 1
        actions += outcome.actions
        if outcome.kind is not Kind.NOTHING:
            logs.outcome_line(step.name, outcome, event=event.id, type="sweep")
    left = len(found) - reasons.total()
    message = (
        ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items())) or "nothing to look at"
    )
    if left:
        message += f"; {left} of {len(found)} objects left to the next sweep"
    return Outcome(Kind.DONE if actions else Kind.NOTHING, SWEPT, message, actions=actions)


def _anywhere(event_id: str, length: int) -> int:
    """A place in a list, the same for a retry of the same event."""
    return int.from_bytes(sha256(event_id.encode()).digest()[:8]) % length if length else 0
