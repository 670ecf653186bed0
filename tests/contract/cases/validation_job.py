"""Jobs: sizes, and what may change."""

from __future__ import annotations

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import Object, job, jobs
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
INDEXED: Object = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}


def _patch(api: Conversation, ns: str, spec: Object, form: str = MERGE_PATCH) -> int:
    return api.request("PATCH", jobs(ns, "job"), {"spec": spec}, form).status


@case(releases=BOTH)
def scaled(api: Conversation, ns: str) -> None:
    """An Indexed Job is scaled by parallelism and completions together; generation counts."""
    api.must("POST", jobs(ns), job(**INDEXED))
    found = api.must("PATCH", jobs(ns, "job"), {"spec": {"parallelism": 5, "completions": 5}}, MERGE_PATCH)
    assert (found["spec"]["completions"], found["metadata"]["generation"]) == (5, 2)


@case(releases=BOTH)
def scaled_apart(api: Conversation, ns: str) -> None:
    """An Indexed Job's completions cannot change alone."""
    api.must("POST", jobs(ns), job(**INDEXED))
    answer = api.request("PATCH", jobs(ns, "job"), {"spec": {"completions": 5}}, MERGE_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.completions")]


@case(releases=BOTH)
def completions_frozen(api: Conversation, ns: str) -> None:
    """A NonIndexed Job's completions are immutable."""
    api.must("POST", jobs(ns), job(completions=3, parallelism=3))
    assert _patch(api, ns, {"completions": 5, "parallelism": 5}) == 422


@case(releases=BOTH)
def parallelism_free(api: Conversation, ns: str) -> None:
    """Parallelism, suspend, backoffLimit and the deadlines may change."""
    api.must("POST", jobs(ns), job())
    changes = {
        "parallelism": 0,
        "suspend": True,
        "backoffLimit": 1,
        "activeDeadlineSeconds": 5,
        "ttlSecondsAfterFinished": 9,
    }
    assert _patch(api, ns, changes) == 200


@case(releases=BOTH)
def long_name(api: Conversation, ns: str) -> None:
    """An Indexed Job's name leaves room for the index in a hostname."""
    answer = api.request("POST", jobs(ns), job("a" * 62, **INDEXED))
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "metadata.name")]


@case(releases=BOTH)
def template_frozen(api: Conversation, ns: str) -> None:
    """The template of a Job is immutable."""
    api.must("POST", jobs(ns), job())
    spec = {"template": {"metadata": {"labels": {"a": "b"}}}}
    assert _patch(api, ns, spec) == 422
    assert _patch(api, ns, {"template": {"spec": {"priorityClassName": "system-node-critical"}}}) == 422


@case(releases=BOTH)
def template_open_while_suspended(api: Conversation, ns: str) -> None:
    """A suspended Job that never started may get labels, node selectors and gates in its template."""
    api.must("POST", jobs(ns), job(suspend=True))
    changes: list[Object] = [
        {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}},
        {"spec": {"nodeSelector": {"e": "f"}}},
        {"spec": {"tolerations": [{"key": "g", "operator": "Exists"}]}},
        {"spec": {"schedulingGates": [{"name": "example.com/wait"}]}},
    ]
    for change in changes:
        assert _patch(api, ns, {"template": change}) == 200


@case(releases=BOTH)
def group_frozen_while_suspended(api: Conversation, ns: str) -> None:
    """A suspended Job's template cannot get a schedulingGroup."""
    api.must("POST", jobs(ns), job(suspend=True))
    spec = {"template": {"spec": {"schedulingGroup": {"podGroupName": "group"}}}}
    assert _patch(api, ns, spec) == 422


@case(releases=BOTH)
def template_closed_once_started(api: Conversation, ns: str) -> None:
    """A suspended Job that has started, and is not said to be suspended, keeps its template."""
    api.must("POST", jobs(ns), job(suspend=True))
    status = {"status": {"startTime": "2026-01-01T00:00:00Z"}}
    api.must("PATCH", jobs(ns, "job") + "/status", status, MERGE_PATCH)
    assert _patch(api, ns, {"template": {"spec": {"nodeSelector": {"e": "f"}}}}) == 422


@case(releases=BOTH)
def template_open_once_suspended(api: Conversation, ns: str) -> None:
    """A Job that has started and is suspended may get another node selector."""
    api.must("POST", jobs(ns), job(suspend=True))
    suspended = {"type": "Suspended", "status": "True"}
    status = {"status": {"startTime": "2026-01-01T00:00:00Z", "conditions": [suspended]}}
    api.must("PATCH", jobs(ns, "job") + "/status", status, MERGE_PATCH)
    assert _patch(api, ns, {"template": {"spec": {"nodeSelector": {"e": "f"}}}}) == 200


@case()
def group_in_template(api: Conversation, ns: str) -> None:
    """A Job may be created with a schedulingGroup in its template."""
    found = api.must("POST", jobs(ns), job(template={"schedulingGroup": {"podGroupName": "group"}}))
    assert found["spec"]["template"]["spec"]["schedulingGroup"] == {"podGroupName": "group"}


@case(releases=BOTH)
def scheduling_dropped(api: Conversation, ns: str) -> None:
    """spec.scheduling is dropped silently while WorkloadWithJob is off."""
    found = api.must("POST", jobs(ns), job(scheduling={"schedulingPolicy": {"gang": {}}}))
    assert "scheduling" not in found["spec"]


@case(releases=BOTH)
def status_only(api: Conversation, ns: str) -> None:
    """A Job's status is written by its status endpoint alone."""
    api.must("POST", jobs(ns), {**job(), "status": {"active": 7}})
    found = api.must("PATCH", jobs(ns, "job"), {"status": {"active": 7}}, MERGE_PATCH)
    assert "active" not in found["status"]
    found = api.must(
        "PATCH",
        jobs(ns, "job") + "/status",
        {"status": {"active": 1}, "spec": {"parallelism": 9}},
        MERGE_PATCH,
    )
    assert (found["status"]["active"], found["spec"]["parallelism"]) == (1, 1)


@case(releases=BOTH)
def foreign_condition(api: Conversation, ns: str) -> None:
    """A Job's status accepts conditions of any type."""
    api.must("POST", jobs(ns), job())
    body = {
        "status": {"conditions": [{"type": "muster.dev/PodGroupsReady", "status": "True", "reason": "Made"}]}
    }
    found = api.must("PATCH", jobs(ns, "job") + "/status", body, MERGE_PATCH)
    assert found["status"]["conditions"][0]["type"] == "muster.dev/PodGroupsReady"


@case(releases=BOTH)
def metadata_free(api: Conversation, ns: str) -> None:
    """Annotations, labels and owners of a Job may change at any time, and no generation counts them."""
    api.must("POST", jobs(ns), job(**INDEXED))
    reference = {"apiVersion": "example.com/v1", "kind": "Experiment", "name": "theirs", "uid": "1234"}
    change = {"annotations": {"a": "b"}, "labels": {"c": "d"}, "ownerReferences": [reference]}
    found = api.must("PATCH", jobs(ns, "job"), {"metadata": change}, MERGE_PATCH)
    assert found["metadata"]["ownerReferences"] == [reference]
    assert found["metadata"]["generation"] == 1


_EXIT_42: Object = {"operator": "In", "values": [42]}
