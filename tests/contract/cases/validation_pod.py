"""What of a Pod may change, and its scheduling gates and group."""

from __future__ import annotations

from tests.cluster.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from tests.contract.bodies import CLASSES, Object, core, gated, pod, priority_class
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")
GROUP = {"podGroupName": "group"}


def _refused(api: Conversation, ns: str, spec: Object) -> None:
    answer = api.request("PATCH", core(ns, "pods", "pod"), {"spec": spec}, MERGE_PATCH)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueForbidden", "spec")]


@case()
def group_kept(api: Conversation, ns: str) -> None:
    """SchedulingGroup is kept at creation, though no such PodGroup exists."""
    found = api.must("POST", core(ns, "pods"), pod(schedulingGroup=GROUP))
    assert found["spec"]["schedulingGroup"] == GROUP


@case(releases=BOTH)
def group_added(api: Conversation, ns: str) -> None:
    """SchedulingGroup cannot be added to a pod."""
    api.must("POST", core(ns, "pods"), pod())
    _refused(api, ns, {"schedulingGroup": GROUP})


@case(releases=BOTH)
def group_added_while_gated(api: Conversation, ns: str) -> None:
    """SchedulingGroup cannot be added to a gated pod either."""
    api.must("POST", core(ns, "pods"), gated())
    _refused(api, ns, {"schedulingGroup": GROUP})


@case(releases=BOTH)
def group_changed(api: Conversation, ns: str) -> None:
    """SchedulingGroup cannot change."""
    api.must("POST", core(ns, "pods"), gated(schedulingGroup=GROUP))
    _refused(api, ns, {"schedulingGroup": {"podGroupName": "other"}})


@case(releases=BOTH)
def group_removed(api: Conversation, ns: str) -> None:
    """SchedulingGroup cannot be removed."""
    api.must("POST", core(ns, "pods"), gated(schedulingGroup=GROUP))
    _refused(api, ns, {"schedulingGroup": None})


@case()
def group_without_name(api: Conversation, ns: str) -> None:
    """An empty schedulingGroup is refused."""
    answer = api.request("POST", core(ns, "pods"), pod(schedulingGroup={}))
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.schedulingGroup.podGroupName")]


@case(releases=BOTH)
def group_bad_name(api: Conversation, ns: str) -> None:
    """A podGroupName that is no DNS subdomain is refused."""
    answer = api.request("POST", core(ns, "pods"), pod(schedulingGroup={"podGroupName": "Not_A_Name"}))
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.schedulingGroup.podGroupName")]


@case(releases=BOTH)
def gate_condition(api: Conversation, ns: str) -> None:
    """A gated pod is born with PodScheduled=False, reason SchedulingGated."""
    found = api.must("POST", core(ns, "pods"), gated())
    condition = found["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )


@case(releases=BOTH)
def gate_condition_stays(api: Conversation, ns: str) -> None:
    """The condition SchedulingGated stays when the last gate is lifted."""
    api.must("POST", core(ns, "pods"), gated())
    gone = [{"$patch": "delete", "name": "example.com/wait"}]
    found = api.must("PATCH", core(ns, "pods", "pod"), {"spec": {"schedulingGates": gone}}, STRATEGIC_PATCH)
    assert "schedulingGates" not in found["spec"]
    assert found["status"]["conditions"][0]["reason"] == "SchedulingGated"


@case(releases=BOTH)
def gate_added(api: Conversation, ns: str) -> None:
    """A gate cannot be added after creation."""
    api.must("POST", core(ns, "pods"), pod())
    body = {"spec": {"schedulingGates": [{"name": "example.com/late"}]}}
    answer = api.request("PATCH", core(ns, "pods", "pod"), body, STRATEGIC_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueForbidden", "spec.schedulingGates[0].name")]


@case(releases=BOTH)
def gate_twice(api: Conversation, ns: str) -> None:
    """Two gates of one name are refused."""
    answer = api.request("POST", core(ns, "pods"), gated("pod", "example.com/a", "example.com/a"))
    assert answer.status == 422
    assert answer.causes == [("FieldValueDuplicate", "spec.schedulingGates[1]")]


@case(releases=BOTH)
def gate_bad_name(api: Conversation, ns: str) -> None:
    """A gate's name is a qualified name."""
    answer = api.request("POST", core(ns, "pods"), gated("pod", "not a name"))
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.schedulingGates[0]")]


@case(releases=BOTH)
def gate_on_node(api: Conversation, ns: str) -> None:
    """A gated pod cannot be born on a node."""
    answer = api.request("POST", core(ns, "pods"), gated(nodeName="node-1"))
    assert answer.status == 422


@case(releases=BOTH)
def gates_one_by_one(api: Conversation, ns: str) -> None:
    """Gates are lifted one by one, each by its owner, and generation counts."""
    made = api.must("POST", core(ns, "pods"), gated("pod", "example.com/a", "example.com/b"))
    for name in ("example.com/a", "example.com/b"):
        body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": name}]}}
        found = api.must("PATCH", core(ns, "pods", "pod"), body, STRATEGIC_PATCH)
    assert "schedulingGates" not in found["spec"]
    assert found["metadata"]["generation"] == made["metadata"]["generation"] + 2


@case(releases=BOTH)
def labels_free(api: Conversation, ns: str) -> None:
    """Labels and annotations may change at any time, and no generation counts them."""
    api.must("POST", core(ns, "pods"), pod())
    body = {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}}
    found = api.must("PATCH", core(ns, "pods", "pod"), body, MERGE_PATCH)
    assert found["metadata"]["labels"] == {"a": "b"}
    assert found["metadata"]["generation"] == 1


@case(releases=BOTH)
def image_free(api: Conversation, ns: str) -> None:
    """A container's image may change."""
    api.must("POST", core(ns, "pods"), pod())
    operations = [{"op": "replace", "path": "/spec/containers/0/image", "value": "registry.example/app:2"}]
    found = api.must("PATCH", core(ns, "pods", "pod"), operations, JSON_PATCH)
    assert found["spec"]["containers"][0]["image"] == "registry.example/app:2"


@case(releases=BOTH)
def command_frozen(api: Conversation, ns: str) -> None:
    """A container's command may not change."""
    api.must("POST", core(ns, "pods"), pod())
    operations = [{"op": "add", "path": "/spec/containers/0/command", "value": ["sh"]}]
    answer = api.request("PATCH", core(ns, "pods", "pod"), operations, JSON_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueForbidden", "spec")]


@case(releases=BOTH)
def containers_frozen(api: Conversation, ns: str) -> None:
    """A container may not be added."""
    api.must("POST", core(ns, "pods"), pod())
    body = {"spec": {"containers": [{"name": "second", "image": "b"}]}}
    answer = api.request("PATCH", core(ns, "pods", "pod"), body, STRATEGIC_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueForbidden", "spec.containers")]


@case(releases=BOTH)
def scheduler_frozen(api: Conversation, ns: str) -> None:
    """SchedulerName may not change."""
    api.must("POST", core(ns, "pods"), gated())
    _refused(api, ns, {"schedulerName": "other"})


@case(releases=BOTH)
def priority_frozen(api: Conversation, ns: str) -> None:
    """Priority may not change."""
    api.must("POST", core(ns, "pods"), gated())
    _refused(api, ns, {"priority": 5})


@case(releases=BOTH)
def selector_grows_while_gated(api: Conversation, ns: str) -> None:
    """A gated pod's nodeSelector may get more keys."""
    api.must("POST", core(ns, "pods"), gated(nodeSelector={"a": "1"}))
    body = {"spec": {"nodeSelector": {"b": "2"}}}
    found = api.must("PATCH", core(ns, "pods", "pod"), body, MERGE_PATCH)
    assert found["spec"]["nodeSelector"] == {"a": "1", "b": "2"}


@case(releases=BOTH)
def selector_shrinks(api: Conversation, ns: str) -> None:
    """A gated pod's nodeSelector may not lose keys."""
    api.must("POST", core(ns, "pods"), gated(nodeSelector={"a": "1"}))
    answer = api.request(
        "PATCH", core(ns, "pods", "pod"), {"spec": {"nodeSelector": {"a": None}}}, MERGE_PATCH
    )
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.nodeSelector")]


@case(releases=BOTH)
def selector_frozen(api: Conversation, ns: str) -> None:
    """The nodeSelector of a pod without gates may not change."""
    api.must("POST", core(ns, "pods"), pod())
    _refused(api, ns, {"nodeSelector": {"b": "2"}})


@case(releases=BOTH)
def affinity_while_gated(api: Conversation, ns: str) -> None:
    """A gated pod without node affinity may be given some."""
    api.must("POST", core(ns, "pods"), gated())
    terms = [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}]
    needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    body = {"spec": {"affinity": {"nodeAffinity": needed}}}
    assert (
        api.must("PATCH", core(ns, "pods", "pod"), body, MERGE_PATCH)["spec"]["affinity"]["nodeAffinity"]
        == needed
    )


@case(releases=BOTH)
def pod_affinity_while_gated(api: Conversation, ns: str) -> None:
    """A gated pod's pod affinity may not change."""
    api.must("POST", core(ns, "pods"), gated())
    near = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}}
    _refused(
        api, ns, {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}}
    )


@case(releases=BOTH)
def tolerations_grow(api: Conversation, ns: str) -> None:
    """Tolerations may be added."""
    made = api.must("POST", core(ns, "pods"), pod())
    more = [*made["spec"]["tolerations"], {"key": "gpu", "operator": "Exists"}]
    found = api.must("PATCH", core(ns, "pods", "pod"), {"spec": {"tolerations": more}}, MERGE_PATCH)
    assert len(found["spec"]["tolerations"]) == 3


@case(releases=BOTH)
def tolerations_shrink(api: Conversation, ns: str) -> None:
    """Tolerations may not be removed, but for the default ones, which come back by themselves."""
    made = api.must("POST", core(ns, "pods"), pod(tolerations=[{"key": "gpu", "operator": "Exists"}]))
    kept = [toleration for toleration in made["spec"]["tolerations"] if toleration["key"] == "gpu"]
    found = api.must("PATCH", core(ns, "pods", "pod"), {"spec": {"tolerations": kept}}, MERGE_PATCH)
    assert len(found["spec"]["tolerations"]) == 3
    answer = api.request("PATCH", core(ns, "pods", "pod"), {"spec": {"tolerations": []}}, MERGE_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueForbidden", "spec.tolerations")]


@case(releases=BOTH)
def deadline(api: Conversation, ns: str) -> None:
    """ActiveDeadlineSeconds may be set and lowered, not raised or cleared."""
    api.must("POST", core(ns, "pods"), pod())
    for value, accepted in ((100, True), (50, True), (60, False), (None, False)):
        body = {"spec": {"activeDeadlineSeconds": value}}
        assert api.request("PATCH", core(ns, "pods", "pod"), body, MERGE_PATCH).ok == accepted


@case(releases=BOTH)
def priority_of_class(api: Conversation, ns: str) -> None:
    """A pod takes its priority from its PriorityClass."""
    api.must("POST", CLASSES, priority_class(f"{ns}-hi", 1000))
    found = api.must("POST", core(ns, "pods"), pod(priorityClassName=f"{ns}-hi"))
    assert found["spec"]["priority"] == 1000


@case(releases=BOTH)
def priority_differs(api: Conversation, ns: str) -> None:
    """A priority that differs from that of the class is forbidden."""
    answer = api.request("POST", core(ns, "pods"), pod(priority=7))
    assert (answer.status, answer.reason) == (403, "Forbidden")


@case(releases=BOTH)
def priority_class_missing(api: Conversation, ns: str) -> None:
    """A PriorityClass that does not exist is forbidden."""
    answer = api.request("POST", core(ns, "pods"), pod(priorityClassName="contract-none"))
    assert (answer.status, answer.reason) == (403, "Forbidden")


@case(releases=BOTH)
def class_value_frozen(api: Conversation, ns: str) -> None:
    """A PriorityClass's value may not change, and a user's may not exceed a billion."""
    api.must("POST", CLASSES, priority_class(f"{ns}-value", 5))
    answer = api.request("PATCH", f"{CLASSES}/{ns}-value", {"value": 6}, MERGE_PATCH)
    assert answer.status == 422
    answer = api.request("POST", CLASSES, priority_class(f"{ns}-huge", 1_000_000_001))
    assert answer.status == 422


@case(releases=BOTH)
def system_class(api: Conversation, ns: str) -> None:
    """The system classes exist, and a pod may use them."""
    found = api.must("POST", core(ns, "pods"), pod(priorityClassName="system-node-critical"))
    assert found["spec"]["priority"] == 2_000_001_000


@case(releases=BOTH)
def restart_policy(api: Conversation, ns: str) -> None:
    """An unknown restart policy is refused with 422."""
    answer = api.request("POST", core(ns, "pods"), pod(restartPolicy="Sometimes"))
    assert answer.status == 422
    assert answer.causes == [("FieldValueNotSupported", "spec.restartPolicy")]
