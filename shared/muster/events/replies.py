"""Reply events: the CloudEvent in a step's answer, to which others can subscribe."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

from cloudevents.core.bindings.http import HTTPMessage, to_binary
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from pydantic.alias_generators import to_camel

from muster.objects.meta import ObjectRef
from muster.objects.resources import guess_plural
from muster.policy.model import Reply


def reply_event(reply: Reply, step: str, event_id: str, now: datetime, cluster_name: str = "") -> HTTPMessage:
    """Return headers and body of the reply event, in binary mode; a retry gets the same source and id."""
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
    about = {to_camel(name): value for name, value in asdict(owner).items()}
    return to_binary(CloudEvent(attributes, {**reply.data, "owner": about}), JSONFormat())


def subject(ref: ObjectRef) -> str:
    """Return the subject of events about an object, in the form of ApiServerSource, `/apis/v1` included."""
    return f"/apis/{ref.api_version}/namespaces/{ref.namespace}/{guess_plural(ref.kind)}/{ref.name}"
