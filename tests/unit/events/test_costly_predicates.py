"""A predicate takes little time for any event of 16 KB: it runs before the event has a turn.

The turns of events share a function fairly between namespaces; what a predicate takes, no namespace pays for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from muster.events.cloudevent import EventLimits
from muster.events.parse import parse
from muster.objects.meta import has_more_fields
from muster.runtime.config import Settings
from muster.runtime.handle import _subject
from muster.steps import step_named, step_names
from tests.support import cpu

SETTINGS = Settings()
LIMITS = EventLimits(SETTINGS.body_limit_values, SETTINGS.attribute_limit)
SIZE = 16_000
POLICY = "muster.dev/pod-group-policy"
KINDS = {
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "TrainJob": "trainer.kubeflow.org/v1alpha1",
    "TrainingRuntime": "trainer.kubeflow.org/v1alpha1",
    "Pod": "v1",
    "PodGroup": "scheduling.k8s.io/v1beta1",
    "Workload": "scheduling.k8s.io/v1beta1",
}


def full(entry: Any) -> list[Any]:
    """As many equal entries as an event of that size can have."""
    return [entry] * (SIZE // (len(json.dumps(entry, separators=(",", ":"))) + 1))


def with_metadata(**fields: Any) -> dict[str, Any]:
    """An object with these fields in its metadata."""
    return {"metadata": {"name": "a", "namespace": "b", "uid": "c", "generation": 1, **fields}}


def runtime(jobs: int, policy: str = "", owners: int = 0) -> dict[str, Any]:
    """A runtime of so many replicatedJobs, whose templates have so many owners."""
    owned: dict[str, Any] = {"metadata": {"ownerReferences": [{}] * owners}}
    pod = {"spec": {"template": owned}} if owners else {}
    entries = [{"name": f"j{number}", "template": pod} for number in range(jobs)]
    annotations = {"annotations": {POLICY: policy}} if policy else {}
    return with_metadata(**annotations) | {"spec": {"template": {"spec": {"replicatedJobs": entries}}}}


def marked(jobs: int) -> dict[str, Any]:
    """A runtime with a policy, as Muster marked it."""
    labels: dict[str, Any] = {"f:template": {"f:spec": {"f:template": {"f:metadata": {"f:labels": {}}}}}}
    owned = {f'k:{{"name":"j{number}"}}': labels for number in range(jobs)}
    fields = {"f:spec": {"f:template": {"f:spec": {"f:replicatedJobs": owned}}}}
    content = runtime(jobs, "kaiScheduler: {queue: a}")
    content["metadata"]["managedFields"] = [{"manager": "muster-mark-runtime", "fieldsV1": fields}] * 5
    return content


def with_lists(entries: int) -> dict[str, Any]:
    """An object whose lists have so many entries each."""
    spec = {"tolerations": [{}] * entries, "schedulingGates": [{"name": "a"}] * entries}
    owners: dict[str, Any] = {"ownerReferences": [{}] * entries}
    return with_metadata(**owners) | {"spec": {**spec, "template": {"metadata": owners, "spec": spec}}}


OBJECTS = {
    "owners": with_metadata(ownerReferences=full({})),
    "managed fields": with_metadata(managedFields=full({"manager": "a"})),
    "labels": with_metadata(labels={f"k{number}": "v" for number in range(SIZE // 12)}),
    "conditions": with_metadata() | {"status": {"conditions": full({})}},
    "replicatedJobs": with_metadata() | {"spec": {"replicatedJobs": full({"name": "a"})}},
    "their status": with_metadata() | {"status": {"replicatedJobsStatus": full({})}},
    "tolerations": with_metadata()
    | {"spec": {"tolerations": full({}), "schedulingGates": full({"name": "a"})}},
    "a runtime of many jobs": runtime(256),
    "replicated_jobs": with_metadata() | {"spec": {"replicated_jobs": full({"name": "a"})}},
    "a runtime of jobs of many owners": runtime(5, owners=SIZE // 15),
    "a runtime of replicated_jobs": with_metadata()
    | {"spec": {"template": {"spec": {"replicated_jobs": full({"name": "a"})}}}},
    "numbers": with_metadata() | {"status": {"conditions": [{"a": 7e-311}] * 1_000}},
    "a runtime that is marked": marked(8),
    "a runtime of many jobs that is marked": marked(64),
    "full lists": with_lists(1_000),
    "a runtime of some jobs with a policy": runtime(8, "workload: {groups: [" + "{name: a}," * 45 + "]}"),
}


def deciding(name: str, happened: str, body: bytes) -> Callable[[], object]:
    """Return what calls the predicate of a step for an event of this body."""
    headers = {
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-source": "/a",
        "ce-type": f"dev.knative.apiserver.resource.{happened}",
        "content-type": "application/json",
    }
    return partial(_subject, step_named(name), parse(headers, body, LIMITS))


@pytest.mark.thorough
@pytest.mark.parametrize("content", OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", step_names())
def test_no_predicate_takes_long(name: str, kind: str, content: dict[str, Any]) -> None:
    """195 events a second of 5 ms each make half of those of others late, with a megabyte a second."""
    body = json.dumps({"apiVersion": KINDS[kind], "kind": kind, **content}).encode()
    for happened in ("add", "update"):
        decide = deciding(name, happened, body)
        assert min(cpu.seconds_of(decide) for _ in range(3)) < 0.004


TEMPLATE = {"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}
STORED = {
    "a runtime of many jobs that is marked": marked(64),
    "full lists": with_lists(1_000),
    "replicatedJobs": with_metadata()
    | {"spec": {"replicatedJobs": full({"name": "a", "template": TEMPLATE})}},
}
"""An API server stores no replicatedJob without a template."""


@pytest.mark.parametrize("content", STORED.values(), ids=STORED)
@pytest.mark.parametrize("name", step_names())
def test_no_object_of_a_page_takes_long(name: str, content: dict[str, Any]) -> None:
    """A sweep looks at 500 in a row: of marked runtimes this took 6 s, and no other function read a page."""
    for listing in step_named(name).lists:
        body = {"apiVersion": listing.resource.api_version, "kind": listing.resource.kind, **content}
        assert min(cpu.seconds_of(partial(listing.kept, body, 10**6)) for _ in range(3)) < 0.005


class Unread(list[int]):
    """Entries that nobody may look at."""

    def __iter__(self) -> Iterator[int]:
        """Fail."""
        raise AssertionError("the entries were read")


def test_a_container_of_too_many_entries_is_not_read() -> None:
    """25,000 zeros, 50 KB, took mark_runtime 9 ms an event."""
    assert has_more_fields({"x": Unread([0] * 11)}, most=11)
    assert not has_more_fields({"x": [0] * 10}, most=11)


def test_a_long_policy_is_not_read() -> None:
    """Each event may have another one, which no cache knows: 30 ms each."""
    content = runtime(1, "[" + "1," * (SIZE // 2 - 200) + "]")
    body = json.dumps({"apiVersion": KINDS["TrainingRuntime"], "kind": "TrainingRuntime", **content}).encode()
    assert cpu.seconds_of(deciding("mark_runtime", "update", body)) < 0.01
