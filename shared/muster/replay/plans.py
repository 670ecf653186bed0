"""What a step plans for an event on the objects of a cluster, and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import yaml

from muster.cluster.interface import Cluster
from muster.cluster.observe import sweep
from muster.events.parse import Event, Sweep, parse
from muster.objects.meta import ObjectRef
from muster.policy.model import Action, Decision, NoOp
from muster.replay.files import RecordedRequest
from muster.runtime.step import Step

Document = dict[str, Any]
"""A plan as plain data, in the shape that `muster plan` prints."""


def subjects(step: Step, event: Event, cluster: Cluster) -> list[ObjectRef | NoOp]:
    """Return what a step looks at for an event: one object, those of a sweep, or the reason to do nothing."""
    if isinstance(event, Sweep):
        return [subject for name in sweep.namespaces(cluster) for subject in step.swept(cluster, name)]
    return [step.subject_of(event)]


def decide(step: Step, subject: ObjectRef | NoOp, cluster: Cluster, now: datetime) -> Decision:
    """Return the decision of a step about a subject."""
    return subject if isinstance(subject, NoOp) else step.plan(step.observe(cluster, subject), now)


def decisions(step: Step, request: RecordedRequest, cluster: Cluster, now: datetime) -> list[Decision]:
    """Return the decisions of a step for an event, one for each subject."""
    event = parse(request.headers, request.body)
    return [decide(step, subject, cluster, now) for subject in subjects(step, event, cluster)]


def to_document(step: Step, decision: Decision) -> Document:
    """Return a decision as `muster plan` prints it.

    Scripts read this output: a field may be added, none may be removed or renamed.
    """
    actions = () if isinstance(decision, NoOp) else decision.actions
    return {
        "function": step.name,
        "outcome": "Plan" if actions else "Nothing",
        "reason": str(decision.reason),
        "actions": [_action(action) for action in actions],
    }


def as_lines(step: Step, decision: Decision) -> Iterator[str]:
    """Yield a decision as text, with a line for each write."""
    yield ": ".join(filter(None, (step.name, str(decision.reason), decision.message)))
    for action in () if isinstance(decision, NoOp) else decision.actions:
        yield f"  {action.verb} {action.target}"


def as_yaml(documents: Iterable[Document]) -> str:
    """Return plans as a YAML stream; equal plans give equal text."""
    text: str = yaml.safe_dump_all(documents, sort_keys=False, width=110)
    return text


def _action(action: Action) -> Document:
    target = action.target
    document: Document = {
        "verb": str(action.verb),
        "apiVersion": target.api_version,
        "kind": target.kind,
        "namespace": target.namespace,
        "name": target.name,
    }
    if action.subresource:
        document["subresource"] = action.subresource
    content = action.operations or action.body
    if content is not None:
        document["body"] = _plain(content)
    return document


def _plain(value: Any) -> Any:
    """Return data as JSON has them."""
    if isinstance(value, Mapping):
        return {str(name): _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, StrEnum) else value
