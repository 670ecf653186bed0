"""Reply events: the CloudEvent in a step's answer, to which others can subscribe."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cloudevents.core.bindings.http import HTTPMessage, to_binary
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from muster.objects.meta import ObjectRef
from muster.objects.resources import guess_plural
from muster.policy.model import Reply


def reply_event(
    reply: Reply, *, step: str, event_id: str, now: datetime, cluster_name: str = ""
) -> HTTPMessage:
    """Headers and body of the reply event, in binary mode.

    Args:
        reply: the reply of the plan.
        step: the name of the step, `create_workload`.
        event_id: the id of the event that is answered. The reply's id consists of it and the step, so that
            the answer to a retry has the same source and id.
        now: the time of the reply, with a time zone.
        cluster_name: the value of the extension `cluster`; "" sends none.
    """
    attributes: dict[str, Any] = {
        "specversion": "1.0",
        "id": f"{event_id}.{step}",
        "source": f"/muster/{step}",
        "type": f"dev.muster.{step}.{reply.type_suffix}",
        "subject": subject(reply.owner),
        "time": now,
        "datacontenttype": "application/json",
    }
    if cluster_name:
        attributes["cluster"] = cluster_name
    owner = reply.owner
    about = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "namespace": owner.namespace,
        "name": owner.name,
        "uid": owner.uid,
    }
    return to_binary(CloudEvent(attributes, {**reply.data, "owner": about}), JSONFormat())


def subject(ref: ObjectRef) -> str:
    """Return the subject of events about an object, in the form of ApiServerSource, `/apis/v1` included.

    A cluster-scoped object has an empty namespace: `.../namespaces//clustertrainingruntimes/torch`. The
    plural is guessed, as there, because an owner may be of a kind that Muster does not know.
    """
    return f"/apis/{ref.api_version}/namespaces/{ref.namespace}/{guess_plural(ref.kind)}/{ref.name}"
