"""Tables for `kubectl get`: columns of built-in kinds from `printers`, of others from their definition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from muster.simulator.apiserver.handlers.ages import since
from muster.simulator.apiserver.handlers.printers import AGE, COLUMNS, NAME, Column
from muster.simulator.apiserver.http.requests import Request
from muster.simulator.apiserver.kinds import Kind
from muster.simulator.apiserver.objects import Object, at
from muster.simulator.apiserver.store import ObjectRecord


def accepts_table(request: Request) -> bool:
    """Whether the first media type of the client that this server can answer is a Table."""
    return "as=Table" in request.accepted_type()


def table(kind: Kind, records: list[ObjectRecord], version: str, request: Request) -> Object:
    """Return the Table of objects of a kind."""
    columns = _columns(kind)
    include = request.query.get("includeObject", "Metadata")
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": [_row(kind, record.obj, columns, include) for record in records],
    }


def _row(kind: Kind, obj: Object, columns: tuple[Column, ...], include: str) -> Object:
    row: Object = {"cells": [column.cell(obj) for column in columns]}
    phase = at(obj, "status", "phase")
    if kind.kind == "Pod" and not kind.custom and phase in ENDED:
        condition = {"type": "Completed", "status": "True", "reason": phase, "message": ENDED[phase]}
        row["conditions"] = [condition]
    return row | {"object": _row_object(kind, obj, include)}


ENDED = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}


def _row_object(kind: Kind, obj: Object, include: str) -> Object | None:
    if include == "None":
        return None
    if include == "Object":
        return obj | {"apiVersion": kind.api_version}
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": "",
        "priority": column.priority,
    }


def _columns(kind: Kind) -> tuple[Column, ...]:
    if not kind.custom:
        return COLUMNS.get(kind.kind, (NAME, AGE))
    return (NAME, *(_custom(each) for each in kind.columns)) if kind.columns else (NAME, AGE)


def _custom(declared: Mapping[str, Any]) -> Column:
    """Return a column of `additionalPrinterColumns` (`tableconvertor.go`, k8s.io/apiextensions-apiserver)."""
    kind = declared.get("type", "string")

    def cell(obj: Object) -> Any:
        value = _json_path(obj, declared["jsonPath"])
        if value is None:
            return None
        if kind == "date":
            return since(str(value))
        return _text(value) if kind == "string" else value if _fits(value, kind) else None

    return Column(declared["name"], cell, kind, declared.get("priority", 0), declared.get("format", ""))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _fits(value: Any, kind: str) -> bool:
    if kind == "boolean":
        return isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _json_path(obj: Object, path: str) -> Any:
    """Return the value at a printer column's JSONPath: fields, indexes, `[-1:]`, `[?(@.key=="value")]`."""
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
    """Return the steps of a JSONPath; dots inside brackets do not separate steps."""
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
