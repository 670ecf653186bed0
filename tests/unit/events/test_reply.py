"""The CloudEvent with which a step replies."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from muster.events.cloudevent import receive
from muster.events.reply import reply_event, subject
from muster.objects import resources
from muster.objects.meta import ObjectRef
from muster.policy.model import Reply

OWNER = ObjectRef("trainer.kubeflow.org/v1alpha1", "TrainJob", "team-a", "llama", "4bac6118")
NOW = datetime(2026, 11, 21, 8, 17, 25, tzinfo=UTC)
REPLY = Reply("workload_created", OWNER, {"groups": ["trainer"]})


def test_reply_is_one_binary_cloudevent() -> None:
    """Type, source, subject and time say which step did what to whose objects, and when."""
    message = reply_event(REPLY, step="create_workload", event_id="421c", now=NOW)
    assert message.headers == {
        "ce-specversion": "1.0",
        "ce-id": "421c.create_workload",
        "ce-source": "/muster/create_workload",
        "ce-type": "dev.muster.create_workload.workload_created",
        "ce-subject": "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/llama",
        "ce-time": "2026-11-21T08:17:25Z",
        "content-type": "application/json",
    }
    assert json.loads(message.body) == {
        "groups": ["trainer"],
        "owner": {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "namespace": "team-a",
            "name": "llama",
            "uid": "4bac6118",
        },
    }


def test_reply_passes_the_strict_check() -> None:
    """What Muster sends is what Muster would accept, whatever the id of the event it answers."""
    message = reply_event(REPLY, step="create_workload", event_id='ä "1%', now=NOW)
    assert receive(message.headers, message.body).id == 'ä "1%.create_workload'


def test_retry_gives_the_same_event() -> None:
    """A retry keeps the event's id, so its reply keeps the reply's; another step's reply has another."""
    later = NOW.replace(hour=9)
    first = reply_event(REPLY, step="create_workload", event_id="421c", now=NOW).headers
    again = reply_event(REPLY, step="create_workload", event_id="421c", now=later).headers
    other = reply_event(REPLY, step="patch_pods", event_id="421c", now=NOW).headers
    assert (first["ce-source"], first["ce-id"]) == (again["ce-source"], again["ce-id"])
    assert first["ce-id"] != other["ce-id"]


def test_cluster_name_is_an_extension() -> None:
    """Where several clusters feed one broker, the cluster's name distinguishes them."""
    message = reply_event(REPLY, step="create_workload", event_id="1", now=NOW, cluster_name="eu-1")
    assert message.headers["ce-cluster"] == "eu-1"


@pytest.mark.parametrize(
    ("ref", "want"),
    [
        pytest.param(
            ObjectRef("v1", "Pod", "team-a", "p"), "/apis/v1/namespaces/team-a/pods/p", id="a core kind"
        ),
        pytest.param(
            ObjectRef("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "", "torch-distributed"),
            "/apis/trainer.kubeflow.org/v1alpha1/namespaces//clustertrainingruntimes/torch-distributed",
            id="a cluster-scoped kind has an empty namespace",
        ),
        pytest.param(
            ObjectRef("flux-framework.org/v1alpha2", "MiniCluster", "team-a", "flux"),
            "/apis/flux-framework.org/v1alpha2/namespaces/team-a/miniclusters/flux",
            id="an owner of a kind that Muster does not know",
        ),
        pytest.param(
            ObjectRef("example.com/v1", "Policy", "n", "p"),
            "/apis/example.com/v1/namespaces/n/policies/p",
            id="a kind that ends in y",
        ),
    ],
)
def test_subject_is_spelled_as_the_source_does(ref: ObjectRef, want: str) -> None:
    """Replies and ApiServerSource's events about one object have one subject."""
    assert subject(ref) == want


@pytest.mark.parametrize("resource", resources.ALL, ids=lambda resource: resource.kind)
def test_guessed_plural_is_right(resource: resources.Resource) -> None:
    """For all kinds that Muster knows the guess is the resource's real name."""
    guessed = subject(ObjectRef(resource.api_version, resource.kind, "n", "x"))
    assert guessed == f"/apis/{resource.api_version}/namespaces/n/{resource.plural}/x"
