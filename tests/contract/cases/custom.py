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
