"""`muster plan` without its command line: one event, some objects, and what a step would do."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import yaml
from pydantic import ValidationError

from muster.cluster.port import Cluster
from muster.cluster.snapshot import Snapshot
from muster.events.model import Event, Foreign, Sweep
from muster.events.parse import UnreadableEvent, parse
from muster.objects.jobs import Job, JobSet, Namespace, Pod, TrainJob
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.scheduling import PodGroup, Workload
from muster.policy.model import Action, Decision, Nothing, Observed
from muster.policy.reasons import Reason
from muster.replay.files import BadFileError
from muster.replay.recorded_requests import Capture
from muster.replay.snapshots import Object
from muster.runtime.responses import first_fault
from muster.runtime.step import Step

Document = dict[str, Any]
_VIEWS: Mapping[str, type[KubernetesObject]] = {
    view.__name__: view for view in (Job, JobSet, Namespace, Pod, PodGroup, TrainJob, Workload)
}


def plan_on(step: Step, capture: Capture, objects: Iterable[Object], now: datetime) -> list[Document]:
    """What a step makes of an event in a cluster of files: one document, or one for each object of a sweep.

    Raises:
        BadFileError: the event is none that could be read, or an object has a field of the wrong type.
    """
    try:
        event = parse(capture.headers, capture.body)
    except UnreadableEvent as error:
        raise BadFileError(capture.place, str(error)) from None
    there = list(objects)
    cluster = Snapshot(there)
    try:
        subjects = _subjects(step, event, cluster)
    except ValidationError as error:
        raise _bad(f"{capture.place}: data", error) from None
    try:
        return [document_of(step, _decide(step, subject, cluster, now)) for subject in subjects]
    except ValidationError as error:
        raise _bad(_at_fault(there), error) from None


def _subjects(step: Step, event: Event, cluster: Cluster) -> list[ObjectRef | Observed | Nothing]:
    match event:
        case Foreign():
            return [Nothing(Reason.NOT_FOR_THIS_STEP, f"type {event.type}")]
        case Sweep():
            return list(step.responsible_for(cluster))
        case _:
            return [step.subject(event)]


def _decide(step: Step, subject: ObjectRef | Observed | Nothing, cluster: Cluster, now: datetime) -> Decision:
    return subject if isinstance(subject, Nothing) else step.plan(step.observed(cluster, subject), now)


def _bad(place: str, error: ValidationError) -> BadFileError:
    path, message = first_fault(error)
    return BadFileError(f"{place}: {path}", message)


def _at_fault(objects: Iterable[Object]) -> str:
    """Which of the objects has a field of the wrong type, as `Job team-a/sweep`."""
    for found in objects:
        view = _VIEWS.get(found["kind"])
        try:
            if view is not None:
                view.read(found)
        except ValidationError:
            metadata = found["metadata"]
            return str(
                ObjectRef(
                    found["apiVersion"], found["kind"], metadata.get("namespace") or "", metadata["name"]
                )
            )
    return "objects"


def document_of(step: Step, decision: Decision) -> Document:
    """A decision as `muster plan` prints it. Scripts read it: fields are added with care, none goes."""
    planned = () if isinstance(decision, Nothing) else decision.actions
    return {
        "function": step.name,
        "outcome": "Plan" if planned else "Nothing",
        "reason": str(decision.reason),
        "actions": [_action(action) for action in planned],
    }


def as_yaml(documents: Iterable[Document]) -> str:
    """Plans as text: a YAML stream, the same for the same plans."""
    text: str = yaml.safe_dump_all(documents, sort_keys=False, width=110)
    return text


def _action(action: Action) -> Document:
    target = action.target
    told: Document = {
        "verb": str(action.verb),
        "apiVersion": target.api_version,
        "kind": target.kind,
        "namespace": target.namespace,
        "name": target.name,
    }
    if action.subresource:
        told["subresource"] = action.subresource
    if action.operations:
        told["body"] = json.loads(json.dumps(action.operations))
    if action.body is not None:
        told["body"] = json.loads(json.dumps(action.body))
    return told
