"""Tables for `kubectl get`: the columns and cells of each kind.

Columns as in `pkg/printers/internalversion/printers.go` (v1.37.1); those of custom resources come from their
definition.
"""

from __future__ import annotations

import time
from calendar import timegm
from collections.abc import Callable, Mapping
from typing import Any

from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at, name_of
from muster.simulator.apiserver.requests import Request
from muster.simulator.apiserver.store import ObjectRecord

Cells = Callable[[Object], list[Any]]
"""Returns the cells of an object, without its name."""

NAME = {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}


def accepts_table(request: Request) -> bool:
    """Whether the first media type that the client accepts is a Table."""
    accepted = request.headers.get("accept", "").split(",")[0]
    return "as=Table" in accepted


def table(kind: Kind, records: list[ObjectRecord], version: str, request: Request) -> Object:
    """The Table of objects of a kind."""
    columns, cells = _layout(kind)
    include = request.query.get("includeObject", "Metadata")
    rows = [
        {"cells": [name_of(r.obj), *cells(r.obj)], "object": _row_object(kind, r.obj, include)}
        for r in records
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": [NAME, *columns],
        "rows": rows,
    }


def _row_object(kind: Kind, obj: Object, include: str) -> Object | None:
    if include == "None":
        return None
    if include == "Object":
        return obj | {"apiVersion": kind.api_version}
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _column(name: str, kind: str = "string", priority: int = 0) -> Object:
    return {"name": name, "type": kind, "format": "", "description": "", "priority": priority}


def _layout(kind: Kind) -> tuple[list[Object], Cells]:
    if kind.custom:
        return _custom(kind)
    names, cells = LAYOUTS.get(kind.kind, ((), lambda _obj: []))
    return [*(_column(name) for name in names), _column("Age")], lambda obj: [*cells(obj), age(_created(obj))]


def _custom(kind: Kind) -> tuple[list[Object], Cells]:
    if not kind.columns:
        return [_column("Age")], lambda obj: [age(_created(obj))]
    columns = [_column(c["name"], c.get("type", "string"), c.get("priority", 0)) for c in kind.columns]

    def cells(obj: Object) -> list[Any]:
        return [_cell(obj, column) for column in kind.columns]

    return columns, cells


def _cell(obj: Object, column: Mapping[str, Any]) -> Any:
    value = _json_path(obj, column["jsonPath"])
    if column.get("type") == "date":
        return age(str(value)) if value else "<unknown>"
    return value


def _json_path(obj: Object, path: str) -> Any:
    """The value at the JSONPath of a printer column: fields, indexes, `[-1:]`, `[?(@.key=="value")]`."""
    node: Any = obj
    for step in _steps(path):
        if isinstance(node, list):
            if step.startswith("?"):
                key, _, value = step[4:-1].partition("==")
                node = next((item for item in node if str(item.get(key)) == value.strip("\"'")), None)
            else:
                index = int(step.removesuffix(":"))  # of a slice, the column shows the first item
                node = node[index] if -len(node) <= index < len(node) else None
        else:
            node = at(node, step)
    return node


def _steps(path: str) -> list[str]:
    """The steps of a JSONPath; dots inside brackets do not separate steps."""
    steps, current, inside = [], "", False
    for letter in path:
        if letter in "[." and not inside:
            steps.append(current)
            current, inside = "", letter == "["
        elif letter == "]" and inside and (not current.startswith("?") or current.endswith(")")):
            steps.append(current)
            current, inside = "", False
        else:
            current += letter
    return [step for step in [*steps, current] if step]


def _created(obj: Object) -> str:
    return str(at(obj, "metadata", "creationTimestamp") or "")


def age(timestamp: str) -> str:
    """The age of a timestamp as kubectl prints it: `42s`, `5m12s`, `3h`, `12d`."""
    try:
        seconds = int(time.time()) - timegm(time.strptime(timestamp[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return "<unknown>"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:  # noqa: PLR2004 - the thresholds of k8s.io/apimachinery/pkg/util/duration
        return f"{max(seconds, 0)}s"
    if minutes < 10:  # noqa: PLR2004
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if hours < 3:  # noqa: PLR2004
        return f"{minutes}m"
    return f"{hours}h" if days < 2 else f"{days}d"  # noqa: PLR2004


def _pod(obj: Object) -> list[Any]:
    statuses = at(obj, "status", "containerStatuses") or []
    ready = sum(1 for status in statuses if status.get("ready"))
    restarts = sum(int(status.get("restartCount", 0)) for status in statuses)
    total = len(at(obj, "spec", "containers") or [])
    return [f"{ready}/{total}", _pod_state(obj), restarts]


def _pod_state(obj: Object) -> str:
    if at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    if at(obj, "status", "phase") == "Succeeded":
        return "Completed"
    for condition in at(obj, "status", "conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(at(obj, "status", "reason") or at(obj, "status", "phase") or "")


def _job(obj: Object) -> list[Any]:
    conditions = {c["type"]: c.get("status") for c in at(obj, "status", "conditions") or []}
    state = next(
        (kind for kind in ("Complete", "Failed", "Suspended") if conditions.get(kind) == "True"), "Running"
    )
    wanted_pods = at(obj, "spec", "completions") or at(obj, "spec", "parallelism")
    started, ended = at(obj, "status", "startTime"), at(obj, "status", "completionTime")
    duration = age(started) if started and not ended else ""
    return [state, f"{at(obj, 'status', 'succeeded') or 0}/{wanted_pods}", duration]


def _group(obj: Object) -> list[Any]:
    conditions = {c["type"]: c for c in at(obj, "status", "conditions") or []}
    if "DisruptionTarget" in conditions and conditions["DisruptionTarget"].get("status") == "True":
        return [_policy(obj), conditions["DisruptionTarget"].get("reason", "")]
    placed = conditions.get("PodGroupInitiallyScheduled") or conditions.get("PodGroupScheduled")
    if placed is None:
        return [_policy(obj), "Pending"]
    return [_policy(obj), "Scheduled" if placed.get("status") == "True" else "Unschedulable"]


def _policy(obj: Object) -> str:
    policy = at(obj, "spec", "schedulingPolicy") or {}
    return "Gang" if "gang" in policy else "Basic"


def _node(obj: Object) -> list[Any]:
    ready = any(
        c.get("type") == "Ready" and c.get("status") == "True" for c in at(obj, "status", "conditions") or []
    )
    return ["Ready" if ready else "NotReady", at(obj, "status", "nodeInfo", "kubeletVersion") or ""]


def _event(obj: Object) -> list[Any]:
    involved = obj.get("involvedObject") or {}
    return [
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{involved.get('kind', '')}/{involved.get('name', '')}",
        obj.get("message", ""),
    ]


LAYOUTS: Mapping[str, tuple[tuple[str, ...], Cells]] = {
    "Pod": (("Ready", "Status", "Restarts"), _pod),
    "Job": (("Status", "Completions", "Duration"), _job),
    "PodGroup": (("Policy", "Status"), _group),
    "CompositePodGroup": (("Policy", "Status"), _group),
    "Workload": (("Templates",), lambda obj: [len(at(obj, "spec", "podGroupTemplates") or [])]),
    "Node": (("Status", "Version"), _node),
    "Namespace": (("Status",), lambda obj: [at(obj, "status", "phase") or ""]),
    "ConfigMap": (("Data",), lambda obj: [len(obj.get("data") or {}) + len(obj.get("binaryData") or {})]),
    "Secret": (("Type", "Data"), lambda obj: [obj.get("type", ""), len(obj.get("data") or {})]),
    "PriorityClass": (("Value",), lambda obj: [obj.get("value", 0)]),
    "Event": (("Type", "Reason", "Object", "Message"), _event),
    "CustomResourceDefinition": ((), lambda _obj: []),
}
