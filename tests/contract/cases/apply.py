"""Server-side apply: owners, conflicts, removal, keyed lists."""

from __future__ import annotations

from typing import Any

from tests.cluster.api import APPLY, MERGE_PATCH, ApiResponse
from tests.contract.bodies import Object, config_map, core, serve_widgets, widget, widgets
from tests.contract.case import Cases, Conversation

case = Cases(__name__)
CASES = case.all
BOTH = ("1.37", "1.36")


def _apply(api: Conversation, path: str, body: Object, manager: str = "first", **query: str) -> ApiResponse:
    return api.request("PATCH", path, body, APPLY, {"fieldManager": manager, **query})


def _without_dots(fields: Object) -> Object:
    """Return the fields without those of maps themselves, which the embedded server does not note."""
    return {key: _without_dots(child) for key, child in fields.items() if key != "."}


def _owners(obj: Object) -> dict[tuple[str, str, str], Any]:
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): _without_dots(entry["fieldsV1"])
        for entry in obj["metadata"]["managedFields"]
    }


@case(releases=BOTH)
def creates(api: Conversation, ns: str) -> None:
    """Apply creates with 201 and owns exactly what it says."""
    answer = _apply(api, core(ns, "configmaps", "one"), config_map(labels={"a": "b"}))
    assert answer.status == 201
    fields = {"f:data": {"f:key": {}}, "f:metadata": {"f:labels": {"f:a": {}}}}
    assert _owners(answer.body) == {("first", "Apply", ""): fields}


@case(releases=BOTH)
def conflict(api: Conversation, ns: str) -> None:
    """Another manager's value cannot be changed: 409 with the field."""
    path = core(ns, "configmaps", "one")
    _apply(api, path, config_map(data={"a": "1"}))
    assert _apply(api, path, config_map(data={"a": "2"}), "second").reason == "Conflict"


@case(releases=BOTH)
def forced(api: Conversation, ns: str) -> None:
    """Force takes a field over."""
    path = core(ns, "configmaps", "one")
    _apply(api, path, config_map(data={"a": "1"}))
    answer = _apply(api, path, config_map(data={"a": "2"}), "second", force="true")
    assert answer.body["data"] == {"a": "2"}
    assert set(_owners(answer.body)) == {("second", "Apply", "")}


@case(releases=BOTH)
def update_takes_over(api: Conversation, ns: str) -> None:
    """A patch takes a field away from who applied it."""
    path = core(ns, "configmaps", "one")
    _apply(api, path, config_map(data={"a": "1", "b": "1"}))
    found = api.must("PATCH", path, {"data": {"a": "9"}}, MERGE_PATCH, fieldManager="patcher")
    owners = _owners(found)
    assert owners["first", "Apply", ""] == {"f:data": {"f:b": {}}}
    assert owners["patcher", "Update", ""] == {"f:data": {"f:a": {}}}


@case(releases=BOTH)
def put_owners(api: Conversation, ns: str) -> None:
    """A PUT is noted in managedFields with what it changed."""
    made = api.must("POST", core(ns, "configmaps"), config_map(data={"a": "1"}), fieldManager="poster")
    assert _owners(made) == {("poster", "Update", ""): {"f:data": {"f:a": {}}}}
    made["data"]["b"] = "2"
    found = api.must("PUT", core(ns, "configmaps", "one"), made, fieldManager="putter")
    owners = _owners(found)
    assert owners["putter", "Update", ""] == {"f:data": {"f:b": {}}}
    assert owners["poster", "Update", ""] == {"f:data": {"f:a": {}}}


@case(releases=BOTH)
def keyed_list(api: Conversation, ns: str) -> None:
    """Containers are merged by name; a manager's own container goes when it is left out."""
    serve_widgets(api.api, ns)
    path = widgets(ns, "widget")
    _apply(api, path, widget(parts=[{"name": "a", "count": 1}]))
    answer = _apply(api, path, widget(parts=[{"name": "b", "count": 2}]), "second")
    assert answer.body["spec"]["parts"] == [{"name": "a", "count": 1}, {"name": "b", "count": 2}]
    answer = _apply(api, path, widget(parts=[]))
    assert answer.body["spec"]["parts"] == [{"name": "b", "count": 2}]
