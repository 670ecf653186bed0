"""Jobs: sizes, and what may change."""

from __future__ import annotations

from tests.cluster.api import MERGE_PATCH, STRATEGIC_PATCH
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
def mode_frozen(api: Conversation, ns: str) -> None:
    """CompletionMode and backoffLimitPerIndex are immutable."""
    api.must("POST", jobs(ns), job(**INDEXED))
    assert _patch(api, ns, {"completionMode": "NonIndexed"}) == 422
    assert _patch(api, ns, {"backoffLimitPerIndex": 1}) == 422


@case()
def selector_frozen(api: Conversation, ns: str) -> None:
    """The selector is immutable."""
    api.must("POST", jobs(ns), job(**INDEXED))
    assert _patch(api, ns, {"selector": {"matchLabels": {"a": "b"}}}) == 422


@case(releases=BOTH)
def negative(api: Conversation, ns: str) -> None:
    """Count are not negative."""
    answer = api.request("POST", jobs(ns), job(parallelism=-1, backoffLimit=-2))
    assert answer.status == 422
    assert answer.causes == [
        ("FieldValueInvalid", "spec.parallelism"),
        ("FieldValueInvalid", "spec.backoffLimit"),
    ]


@case(releases=BOTH)
def indexed_without_completions(api: Conversation, ns: str) -> None:
    """An Indexed Job needs completions."""
    answer = api.request("POST", jobs(ns), job(completionMode="Indexed", parallelism=2))
    assert answer.status == 422
    assert answer.causes == [("FieldValueRequired", "spec.completions")]


@case(releases=BOTH)
def unknown_mode(api: Conversation, ns: str) -> None:
    """An unknown completion mode is refused."""
    assert api.request("POST", jobs(ns), job(completionMode="Random")).status == 422


@case(releases=BOTH)
def always_restarts(api: Conversation, ns: str) -> None:
    """A Job's pods may not restart always, which is the default."""
    for template in ({"restartPolicy": "Always"}, {"restartPolicy": None}):
        answer = api.request("POST", jobs(ns), job(template=template))
        assert answer.status == 422
        assert answer.causes == [("FieldValueRequired", "spec.template.spec.restartPolicy")]


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
def resources_open_while_suspended(api: Conversation, ns: str) -> None:
    """A suspended Job that never started may get other resources in its template."""
    api.must("POST", jobs(ns), job(suspend=True))
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    assert _patch(api, ns, {"template": {"spec": {"containers": containers}}}, STRATEGIC_PATCH) == 200


@case(releases=BOTH)
def group_frozen_while_suspended(api: Conversation, ns: str) -> None:
    """A suspended Job's template cannot get a schedulingGroup."""
    api.must("POST", jobs(ns), job(suspend=True))
    spec = {"template": {"spec": {"schedulingGroup": {"podGroupName": "group"}}}}
    assert _patch(api, ns, spec) == 422


@case(releases=BOTH)
def image_frozen_while_suspended(api: Conversation, ns: str) -> None:
    """A suspended Job's image and scheduler stay."""
    api.must("POST", jobs(ns), job(suspend=True))
    containers = [{"name": "main", "image": "registry.example/app:2"}]
    assert _patch(api, ns, {"template": {"spec": {"containers": containers}}}, STRATEGIC_PATCH) == 422
    assert _patch(api, ns, {"template": {"spec": {"schedulerName": "other"}}}) == 422


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


@case(releases=BOTH)
def resumed_with_change(api: Conversation, ns: str) -> None:
    """The update that ends a suspension may change the template too."""
    api.must("POST", jobs(ns), job(suspend=True))
    assert _patch(api, ns, {"suspend": False, "template": {"spec": {"nodeSelector": {"e": "f"}}}}) == 200


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
def own_selector(api: Conversation, ns: str) -> None:
    """A selector of one's own that does not fit the template is refused."""
    answer = api.request("POST", jobs(ns), job(manualSelector=True, selector={"matchLabels": {"a": "b"}}))
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.template.metadata.labels")]


@case(releases=BOTH)
def forged_label(api: Conversation, ns: str) -> None:
    """A template cannot bring its own controller-uid."""
    body = job()
    body["spec"]["template"]["metadata"] = {"labels": {"batch.kubernetes.io/controller-uid": "forged"}}
    assert api.request("POST", jobs(ns), body).status == 422


@case(releases=BOTH)
def replacement_policy(api: Conversation, ns: str) -> None:
    """An unknown podReplacementPolicy is refused, and so is per-index backoff without indexes."""
    assert api.request("POST", jobs(ns), job(podReplacementPolicy="Never")).status == 422
    answer = api.request("POST", jobs(ns), job(backoffLimitPerIndex=1))
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.backoffLimitPerIndex")]


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
def finished_stays(api: Conversation, ns: str) -> None:
    """A Job that failed cannot be made to go on."""
    api.must("POST", jobs(ns), job())
    path = jobs(ns, "job") + "/status"
    ended = [{"type": kind, "status": "True"} for kind in ("FailureTarget", "Failed")]
    start = {"startTime": "2026-01-01T00:00:00Z"}
    api.must("PATCH", path, {"status": {"conditions": ended, **start}}, MERGE_PATCH)
    answer = api.request("PATCH", path, {"status": {"conditions": []}}, MERGE_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "status.conditions")]


@case(releases=BOTH)
def failed_needs_target(api: Conversation, ns: str) -> None:
    """A Job fails by FailureTarget first, and completes by SuccessCriteriaMet first."""
    api.must("POST", jobs(ns), job())
    path = jobs(ns, "job") + "/status"
    for kind in ("Failed", "Complete"):
        body = {"status": {"conditions": [{"type": kind, "status": "True"}]}}
        assert api.request("PATCH", path, body, MERGE_PATCH).status == 422


@case(releases=BOTH)
def kept_as_made(api: Conversation, ns: str) -> None:
    """Who manages a Job, and when its pods count as failed or succeeded, is immutable."""
    policies: Object = {
        "managedBy": "example.com/somebody",
        "podFailurePolicy": {"rules": [{"action": "FailIndex", "onExitCodes": _EXIT_42}]},
        "successPolicy": {"rules": [{"succeededCount": 2}]},
    }
    api.must("POST", jobs(ns), job(**INDEXED, backoffLimitPerIndex=1, **policies))
    changes: list[Object] = [
        {"managedBy": "kubernetes.io/job-controller"},
        {"podFailurePolicy": None},
        {"successPolicy": {"rules": [{"succeededCount": 1}]}},
    ]
    for change in changes:
        answer = api.request("PATCH", jobs(ns, "job"), {"spec": change}, MERGE_PATCH)
        assert answer.status == 422
        assert answer.causes == [("FieldValueInvalid", f"spec.{next(iter(change))}")]


@case(releases=BOTH)
def completions_stay_set(api: Conversation, ns: str) -> None:
    """An Indexed Job never loses its completions."""
    api.must("POST", jobs(ns), job(**INDEXED))
    assert _patch(api, ns, {"completions": None}) == 422


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
