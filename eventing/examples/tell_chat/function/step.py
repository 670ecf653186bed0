"""The scheduler has had no room for a PodGroup for five minutes: a chat channel gets one message."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from http import HTTPStatus

import urllib3

from muster import (
    POD_GROUPS,
    Action,
    Cluster,
    Decision,
    Happened,
    NoOp,
    ObjectRef,
    PatchType,
    Plan,
    PodGroup,
    Reason,
    ResourceEvent,
    Step,
    Unavailable,
    Verb,
    get,
    in_order,
    may,
    not_for_step,
    objects_of,
)

PATIENCE = timedelta(minutes=5)
TOLD = "example.com/told-chat"
"""The annotation of a PodGroup that was reported to the chat: since when it had been waiting."""


def predicate(event: ResourceEvent) -> ObjectRef | NoOp:
    """PodGroup update. That time has passed is no event: the sweep finds it, once a minute."""
    return not_for_step(event, PodGroup={Happened.UPDATE}) or event.ref


def observe(cluster: Cluster, subject: ObjectRef) -> PodGroup | None:
    """The live PodGroup; None if it is gone."""
    return get(cluster, PodGroup, POD_GROUPS, subject)


def plan(found: PodGroup | None, now: datetime) -> Decision:
    """The message, and the annotation that says that it was sent."""
    if found is None or found.being_deleted:
        return NoOp(Reason.DELETED)
    since = found.refused_at
    if since is None or found.refusal is None:
        return NoOp("NotWaiting")
    if TOLD in found.metadata.annotations:
        return NoOp("ToldBefore")
    if now - since < PATIENCE:
        return NoOp("NotYet", f"waits since {since:%H:%M:%S}")
    reason, message = found.refusal
    body = {
        "metadata": {
            "annotations": {TOLD: since.isoformat()},
            "resourceVersion": found.metadata.resource_version,
        }
    }
    action = Action(Verb.PATCH, found.ref, body, patch=PatchType.MERGE)
    return Plan("ChatTold", f"{found.ref} waits since {since:%H:%M:%S}: {reason}: {message}", (action,))


def tell(cluster: Cluster, decided: Plan, manager: str) -> Plan:
    """Send the message, then annotate: after a failure in between the chat gets it twice."""
    try:
        webhook = os.environ["WEBHOOK_URL"]
        answer = urllib3.request("POST", webhook, json={"text": decided.message}, timeout=5.0, retries=False)
    except urllib3.exceptions.HTTPError as error:
        raise Unavailable(f"the chat: {error}") from error
    if answer.status >= HTTPStatus.BAD_REQUEST:
        raise Unavailable(f"the chat answers {answer.status}")
    return in_order(cluster, decided, manager)


STEP = Step(
    name="tell_chat",
    predicate=predicate,
    observe=observe,
    plan=plan,
    execute=tell,
    swept=lambda cluster, namespace: objects_of(cluster, namespace, POD_GROUPS),
    permissions=may("get list patch", POD_GROUPS),
)
