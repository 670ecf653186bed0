"""A cluster made of files: the objects of `muster plan`, read without any server."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from muster.cluster.interface import SINGLE_READS, Object, Objects
from muster.cluster.paging import Page
from muster.objects.resources import Resource, SchedulingApi, by_kind
from muster.policy.model import Action

_REQUIREMENT = re.compile(r"(?P<absent>!)?(?P<key>[\w./-]+)(?:(?P<operator>!?==?)(?P<value>[^,]*))?")


class ReadOnlyError(Exception):
    """A step tried to write to a snapshot; only planning happens on one."""


class ReadOnly(ABC):
    """A cluster that is only read from, and whose lists have one page."""

    @abstractmethod
    def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Objects:
        """The objects of a kind that the selectors choose."""

    def page(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        token: str = "",  # noqa: ARG002 - there is one page
    ) -> Page:
        """All of a list."""
        return Page(self.list(resource, namespace, labels=labels, fields=fields))

    def write(self, action: Action, manager: str) -> Object:
        """Refused."""
        raise ReadOnlyError(f"{manager} may not {action.verb} {action.target}")


class Snapshot(ReadOnly):
    """A cluster of objects as they were at one moment."""

    single_reads = SINGLE_READS

    def __init__(self, objects: Iterable[Object]) -> None:
        self._objects: dict[tuple[str, str, str, str], Object] = {}
        for body in objects:
            try:
                resource = by_kind(body["apiVersion"], body["kind"])
            except LookupError:
                continue  # a file may hold more than Muster reads
            metadata = body["metadata"]
            key = (resource.group, resource.kind, metadata.get("namespace", ""), metadata["name"])
            self._objects[key] = body

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The object of that name, or None."""
        return self._objects.get((resource.group, resource.kind, namespace, name))

    def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> Objects:
        """All objects of a kind that the selectors choose."""
        return [
            body
            for (group, kind, where, _), body in self._objects.items()
            if (group, kind) == (resource.group, resource.kind)
            and namespace in {"", where}
            and selected(body, labels, fields)
        ]

    def served_versions(self, group: str) -> frozenset[str]:
        """As a cluster of Kubernetes 1.37 with every gate on."""
        served = {"v1beta1/workloads", "v1beta1/podgroups", "v1alpha3/compositepodgroups"}
        return frozenset(served if group == "scheduling.k8s.io" else ())

    def scheduling(self) -> SchedulingApi:
        """As a cluster of Kubernetes 1.37 with every gate on."""
        return SchedulingApi()

    def refresh(self) -> None:
        """Nothing was discovered that could change."""


def selected(body: Object, labels: str = "", fields: str = "") -> bool:
    """Whether the selectors choose an object; a field that is not there is empty, as the API server has it.

    Raises:
        ValueError: a selector is of a form that Muster does not use.
    """
    return _holds(labels, body["metadata"].get("labels") or {}, None) and (
        not fields or _holds(fields, _flat(body), "")
    )


def _holds(selector: str, values: Mapping[str, str], absent: str | None) -> bool:
    for requirement in filter(None, selector.split(",")):
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"selector {requirement!r} cannot be read")
        key, operator = match["key"], match["operator"]
        if operator is None:
            holds = (key in values) != bool(match["absent"])
        else:
            holds = (values.get(key, absent) == match["value"]) != operator.startswith("!")
        if not holds:
            return False
    return True


def _flat(body: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """The fields of an object by their dotted paths, lists left out."""
    flat: dict[str, str] = {}
    for name, value in body.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif not isinstance(value, list):
            flat[f"{prefix}{name}"] = str(value)
    return flat
