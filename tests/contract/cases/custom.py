"""Custom resources: schemas, defaults, pruning, status, scale, and definitions."""

from __future__ import annotations

from typing import Any

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import DEFINITIONS, Object, core, serve_widgets, widget, widgets
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")


def _refused(api: Conversation, ns: str, field: str, body: Object | None = None, **spec: Any) -> None:
    answer = api.request("POST", widgets(ns), body or widget(**spec))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert field in {name for _, name in answer.causes}


@case(releases=BOTH)
def defaults(api: Conversation, ns: str) -> None:
    """A custom resource gets its defaults and a generation."""
    serve_widgets(api.api, ns)
    found = api.must("POST", widgets(ns), widget())
    assert found["spec"]["mode"] == "Fast"
    assert found["metadata"]["generation"] == 1


@case(releases=BOTH)
def pruned(api: Conversation, ns: str) -> None:
    """Unknown fields are pruned, free ones kept; Strict refuses them with 400."""
    serve_widgets(api.api, ns)
    found = api.must("POST", widgets(ns), widget(unheardOf=1, free={"any": {"thing": 1}}))
    assert "unheardOf" not in found["spec"]
    assert found["spec"]["free"] == {"any": {"thing": 1}}
    answer = api.request("POST", widgets(ns), widget("b", unheardOf=1), query={"fieldValidation": "Strict"})
    assert (answer.status, answer.reason) == (400, "BadRequest")


@case(releases=BOTH)
def wrong_type(api: Conversation, ns: str) -> None:
    """A wrong type is answered with 422, unlike in a built-in kind."""
    serve_widgets(api.api, ns)
    _refused(api, ns, "spec.parts[0].count", parts=[{"name": "a", "count": "x"}])
    _refused(api, ns, "spec.parts", parts={"a": 1})


@case(releases=BOTH)
def required(api: Conversation, ns: str) -> None:
    """A required field is required."""
    serve_widgets(api.api, ns)
    _refused(api, ns, "spec.size", {**widget(), "spec": {}})
    _refused(api, ns, "spec.parts[0].name", parts=[{"count": 1}])


@case(releases=BOTH)
def limits(api: Conversation, ns: str) -> None:
    """Enumerations, bounds, lengths and patterns hold."""
    serve_widgets(api.api, ns)
    _refused(api, ns, "spec.mode", mode="Odd")
    _refused(api, ns, "spec.level", level=0)
    _refused(api, ns, "spec.level", level=4)
    _refused(api, ns, "spec.word", word="toolong")
    _refused(api, ns, "spec.word", word="A")
    _refused(
        api,
        ns,
        "spec.parts",
        parts=[{"name": str(i)} for i in range(4)],
    )


@case(releases=BOTH)
def patterns(api: Conversation, ns: str) -> None:
    """Patterns are those of Go: letters of any alphabet, and no newline before `$`."""
    serve_widgets(api.api, ns)
    api.must("POST", widgets(ns), widget(letters="Größe"))
    _refused(api, ns, "spec.letters", letters="a1")
    _refused(api, ns, "spec.word", word="a\n")


@case(releases=BOTH)
def keys_unique(api: Conversation, ns: str) -> None:
    """Keys of a keyed list and members of a set are unique."""
    serve_widgets(api.api, ns)
    _refused(api, ns, "spec.parts[1]", parts=[{"name": "a"}, {"name": "a"}])
    _refused(api, ns, "spec.tags[1]", tags=["x", "x"])


@case(releases=BOTH)
def int_or_string(api: Conversation, ns: str) -> None:
    """An int-or-string takes both, and nothing else."""
    serve_widgets(api.api, ns)
    api.must("POST", widgets(ns), widget("a", port=80))
    api.must("POST", widgets(ns), widget("b", port="http"))
    answer = api.request("POST", widgets(ns), widget("c", port=True))
    assert answer.status == 422


@case(releases=BOTH)
def immutable_rule(api: Conversation, ns: str) -> None:
    """`self == oldSelf` keeps a field as it is."""
    serve_widgets(api.api, ns)
    api.must("POST", widgets(ns), widget(fixed="a"))
    answer = api.request("PATCH", widgets(ns, "widget"), {"spec": {"fixed": "b"}}, MERGE_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "spec.fixed")]


@case(releases=BOTH)
def generation(api: Conversation, ns: str) -> None:
    """A change of the spec counts as a generation, of labels and status not."""
    serve_widgets(api.api, ns)
    api.must("POST", widgets(ns), widget())
    path = widgets(ns, "widget")
    assert api.must("PATCH", path, {"spec": {"size": 2}}, MERGE_PATCH)["metadata"]["generation"] == 2
    assert (
        api.must("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH)["metadata"]["generation"]
        == 2
    )
    assert (
        api.must("PATCH", f"{path}/status", {"status": {"size": 1}}, MERGE_PATCH)["metadata"]["generation"]
        == 2
    )


@case(releases=BOTH)
def status_apart(api: Conversation, ns: str) -> None:
    """Status is written by its endpoint alone, which writes nothing else."""
    serve_widgets(api.api, ns)
    found = api.must("POST", widgets(ns), {**widget(), "status": {"size": 5}})
    assert "status" not in found
    assert "status" not in api.must("PATCH", widgets(ns, "widget"), {"status": {"size": 5}}, MERGE_PATCH)
    body = {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 7}, "status": {"size": 5}}
    found = api.must("PATCH", widgets(ns, "widget") + "/status", body, MERGE_PATCH)
    assert (found["spec"]["size"], found["status"]["size"]) == (1, 5)
    assert "labels" not in found["metadata"]


@case(releases=BOTH)
def status_wrong_uid(api: Conversation, ns: str) -> None:
    """The status endpoint ignores a wrong uid, and minds the resourceVersion."""
    serve_widgets(api.api, ns)
    made = api.must("POST", widgets(ns), widget())
    path = widgets(ns, "widget") + "/status"
    body: Object = {"metadata": {"uid": "11111111-1111-1111-1111-111111111111"}, "status": {"size": 1}}
    assert api.request("PATCH", path, body, MERGE_PATCH).status == 200
    body = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "status": {"size": 2}}
    answer = api.request("PATCH", path, body, MERGE_PATCH)
    assert (answer.status, answer.reason) == (409, "Conflict")


@case(releases=BOTH)
def status_replaced(api: Conversation, ns: str) -> None:
    """A merge patch of the status replaces its conditions, in the order it gives them."""
    serve_widgets(api.api, ns)
    api.must("POST", widgets(ns), widget())
    path = widgets(ns, "widget") + "/status"
    for kinds in (["A"], ["B", "A"]):
        conditions = [{"type": kind, "status": "True"} for kind in kinds]
        found = api.must("PATCH", path, {"status": {"conditions": conditions}}, MERGE_PATCH)
        assert [c["type"] for c in found["status"]["conditions"]] == kinds


@case(releases=BOTH)
def without_version(api: Conversation, ns: str) -> None:
    """A custom resource may not be replaced without a resourceVersion."""
    serve_widgets(api.api, ns)
    api.must("POST", widgets(ns), widget())
    answer = api.request("PUT", widgets(ns, "widget"), widget(size=2))
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "metadata.resourceVersion")]


@case(releases=BOTH)
def scaled(api: Conversation, ns: str) -> None:
    """The scale endpoint reads and writes the number of replicas."""
    serve_widgets(api.api, ns)
    api.must("POST", widgets(ns), widget())
    path = widgets(ns, "widget") + "/scale"
    found = api.must("GET", path)
    assert (found["kind"], found["spec"]) == ("Scale", {"replicas": 1})
    assert api.must("PATCH", path, {"spec": {"replicas": 4}}, MERGE_PATCH)["spec"] == {"replicas": 4}
    assert api.must("GET", widgets(ns, "widget"))["spec"]["size"] == 4


@case(releases=BOTH)
def listed_with_kind(api: Conversation, ns: str) -> None:
    """Items of a list of custom resources carry their kind."""
    serve_widgets(api.api, ns)
    api.must("POST", widgets(ns), widget())
    assert api.must("GET", widgets(ns))["items"][0]["kind"] == "Widget"


@case(releases=BOTH)
def conflict(api: Conversation, ns: str) -> None:
    """AlreadyExists and Conflict name a custom resource with its group."""
    serve_widgets(api.api, ns)
    named = {"group": "contract.muster.dev", "kind": "widgets", "name": "widget"}
    made = api.must("POST", widgets(ns), widget())
    answer = api.request("POST", widgets(ns), widget())
    assert (answer.status, answer.reason, answer.body["details"]) == (409, "AlreadyExists", named)
    made["spec"]["size"] = 2
    api.must("PUT", widgets(ns, "widget"), made)
    made["spec"]["size"] = 3
    answer = api.request("PUT", widgets(ns, "widget"), made)
    assert (answer.status, answer.reason, answer.body["details"]) == (409, "Conflict", named)


@case(releases=BOTH)
def undefined(api: Conversation, ns: str) -> None:
    """A group without a definition is answered with 404."""
    assert api.request("GET", f"/apis/none.muster.dev/v1/namespaces/{ns}/things").status == 404


@case(releases=BOTH)
def definition_names(api: Conversation, ns: str) -> None:
    """A definition's name is its plural and group."""
    serve_widgets(api.api, ns)
    found = api.must("GET", f"{DEFINITIONS}/widgets.contract.muster.dev")
    conditions = {c["type"]: c["status"] for c in found["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert conditions["NamesAccepted"] == "True"
    body = {**found, "metadata": {"name": "wrong.contract.muster.dev"}}
    del body["status"]
    answer = api.request("POST", DEFINITIONS, body)
    assert answer.status == 422


@case(releases=BOTH)
def null_value(api: Conversation, ns: str) -> None:
    """A null is as if nothing were there: a default comes, a required field is missing."""
    serve_widgets(api.api, ns)
    found = api.must("POST", widgets(ns), widget(mode=None, word=None))["spec"]
    assert found["mode"] == "Fast"
    assert "word" not in found
    _refused(api, ns, "spec.size", size=None)


@case()
def owned_by_nobody(api: Conversation, ns: str) -> None:
    """A reference to an owner needs all its four words, and at most one owner controls."""
    bad = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": [bad]}}
    answer = api.request("POST", core(ns, "configmaps"), body)
    assert answer.status == 422
    assert answer.causes == [("FieldValueRequired", "metadata.ownerReferences[0].uid")]
    two = [{**bad, "uid": str(i), "controller": True} for i in range(2)]
    body["metadata"] = {"name": "a", "ownerReferences": two}
    answer = api.request("POST", core(ns, "configmaps"), body)
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "metadata.ownerReferences")]
