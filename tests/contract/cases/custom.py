"""Custom resources: schemas, defaults, pruning, status, scale, and definitions."""

from __future__ import annotations

from typing import Any

from tests.cluster.api import MERGE_PATCH
from tests.contract.bodies import Object, serve_widgets, widget, widgets
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
def immutable_rule(api: Conversation, ns: str) -> None:
    """`self == oldSelf` keeps a field as it is."""
    serve_widgets(api.api, ns)
    api.must("POST", widgets(ns), widget(fixed="a"))
    assert api.request("PATCH", widgets(ns, "widget"), {"spec": {"fixed": "b"}}, MERGE_PATCH).status == 422


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
    assert api.request("PATCH", path, body, MERGE_PATCH).reason == "Conflict"


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
    assert api.request("PUT", widgets(ns, "widget"), widget(size=2)).status == 422
