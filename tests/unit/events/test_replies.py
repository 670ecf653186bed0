"""The CloudEvent with which a step replies."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from muster.events.parse import OtherEvent, owner_of, parse
from muster.events.replies import reply_event
from muster.objects.meta import ObjectRef
from muster.policy.model import Reply

OWNER = ObjectRef("trainer.kubeflow.org/v1alpha1", "TrainJob", "team-a", "llama", "4bac6118")
NOW = datetime(2026, 11, 21, 8, 17, 25, tzinfo=UTC)
REPLY = Reply("workload_created", OWNER, {"groups": ["trainer"]})


def test_a_reply_is_one_binary_event() -> None:
    """It says which step did what to whose objects, and when; a retry has the same id."""
    message = reply_event(REPLY, step="create_workload", event_id="421c", now=NOW, cluster_name="eu-1")
    assert message.headers == {
        "ce-specversion": "1.0",
        "ce-id": "421c.create_workload",
        "ce-source": "/muster/create_workload",
        "ce-type": "dev.muster.create_workload.workload_created",
        "ce-subject": "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/llama",
        "ce-time": "2026-11-21T08:17:25Z",
        "ce-cluster": "eu-1",
        "content-type": "application/json",
    }
    assert json.loads(message.body)["groups"] == ["trainer"]
    event = parse(message.headers, message.body)
    assert isinstance(event, OtherEvent)
    assert owner_of(event) == OWNER
