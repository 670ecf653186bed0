"""A runtime appears or changes: the group labels of its policy are written on its pod templates."""

from __future__ import annotations

from muster.cluster import execute
from muster.cluster.interface import Cluster
from muster.cluster.observe import sweep
from muster.cluster.permissions import may
from muster.events.parse import ResourceEvent
from muster.events.predicates import ADD, UPDATE, not_for_step
from muster.objects.meta import ObjectRef
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, EVENTS, TRAINING_RUNTIMES, by_kind
from muster.policy.groups.manifests import CLUSTER_SCOPED_EVENTS
from muster.policy.model import NoOp
from muster.policy.plans.mark_runtime import RuntimeInputs, as_executed, needs_events, plan_runtime
from muster.runtime.step import Step

RUNTIMES = (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """TrainingRuntime and ClusterTrainingRuntime add and update."""
    skipped = not_for_step(event, TrainingRuntime={ADD, UPDATE}, ClusterTrainingRuntime={ADD, UPDATE})
    return skipped or event.ref


def observe(cluster: Cluster, subject: ObjectRef) -> RuntimeInputs:
    """Return the whole runtime; if its policy cannot be used, also the names of its Events."""
    body = cluster.get(by_kind(subject.api_version, subject.kind), subject.name, subject.namespace)
    if body is None or (subject.uid and body["metadata"]["uid"] != subject.uid):
        return RuntimeInputs(subject)
    if not needs_events(body):
        return RuntimeInputs(subject, body)
    selector = f"involvedObject.uid={body['metadata']['uid']}"
    events = cluster.list(EVENTS, subject.namespace or CLUSTER_SCOPED_EVENTS, fields=selector)
    return RuntimeInputs(subject, body, frozenset(event["metadata"]["name"] for event in events))


STEP = Step(
    name="mark_runtime",
    predicate=predicate,
    observe=observe,
    plan=plan_runtime,
    execute=execute.in_order_then(as_executed),
    swept=lambda cluster, namespace: sweep.objects_of(cluster, namespace, *RUNTIMES),
    lists=tuple(map(sweep.Listing, RUNTIMES)),
    permissions=may("get list update", *RUNTIMES) | may("list create", EVENTS),
)
