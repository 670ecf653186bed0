"""A read-only cluster made of files, for `muster plan` and replays."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from muster.cluster.interface import POLICY_NAMESPACE, Object, Objects
from muster.objects.resources import Resource, SchedulingApi
from muster.policy.model import Action

_REQUIREMENT = re.compile(r"(?P<absent>!)?(?P<key>[\w./-]+)(?:(?P<operator>!?==?)(?P<value>[^,]*))?")

_LABEL = re.compile(r"[\w./-]+=[\w.-]+")


class Snapshot:
    """A cluster of objects as they were at one moment, without writes."""

    policy_namespace = POLICY_NAMESPACE
    expects_new = False

    def __init__(self, objects: Iterable[Object]) -> None:
        # By group and kind, and then by namespace and name, so that a list looks at one kind only.
        self._kinds: defaultdict[tuple[str, str], dict[tuple[str, str], Object]] = defaultdict(dict)
        # By group, kind and label, and then by value, so that the pods of one owner are found among all.
        self._labelled: dict[tuple[str, str, str], dict[str, Objects]] = {}
        for body in objects:
            group, kind = body["apiVersion"].rpartition("/")[0], body["kind"]
            name = body["metadata"].get("namespace", ""), body["metadata"]["name"]
            self._kinds[group, kind][name] = body

    @property
    def namespaces(self) -> list[str]:
        """The namespaces of its objects, with "" for those that are in none."""
        return sorted({"", *(namespace for kind in self._kinds.values() for namespace, _ in kind)})

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Return the object of that name, or None."""
        return self._kinds[resource.group, resource.kind].get((namespace, name))

    def list(
        self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "", as_of: str = ""
    ) -> Objects:
        """Return all objects of a kind that match the selectors, in the one state that there is."""
        del as_of
        return [
            body
            for body in self._candidates(resource, labels)
            if namespace in ("", body["metadata"].get("namespace", "")) and _selected(body, labels, fields)
        ]

    def _candidates(self, resource: Resource, labels: str) -> Iterable[Object]:
        key, _, value = labels.partition("=")
        bodies = self._kinds[resource.group, resource.kind].values()
        if not value or not _LABEL.fullmatch(labels):
            return bodies
        by_value = self._labelled.get((resource.group, resource.kind, key))
        if by_value is None:
            by_value = self._labelled[resource.group, resource.kind, key] = defaultdict(list)
            for body in bodies:
                by_value[(body["metadata"].get("labels") or {}).get(key, "")].append(body)
        return by_value.get(value, ())

    def write(self, action: Action, manager: str) -> Object:
        """Raise RuntimeError: only executing a plan writes."""
        raise RuntimeError(f"{manager} may not {action.verb} {action.target}")

    def served_versions(self, group: str) -> frozenset[str]:
        """Return the API as Kubernetes 1.37 with all feature gates serves it."""
        served = {"v1beta1/workloads", "v1beta1/podgroups", "v1alpha3/compositepodgroups"}
        return frozenset(served if group == "scheduling.k8s.io" else ())

    def scheduling(self) -> SchedulingApi:
        """Return the API as Kubernetes 1.37 with all feature gates serves it."""
        return SchedulingApi()

    def refresh(self) -> None:
        """Do nothing: the served versions are fixed."""


def _selected(body: Object, labels: str = "", fields: str = "") -> bool:
    """Whether an object matches the selectors; an absent field equals "", as in the API server."""
    own = body["metadata"].get("labels") or {}
    return all(
        ((key in own) if wanted is None else own.get(key) == wanted) is not negated
        for key, wanted, negated in _requirements(labels)
    ) and all((_field(body, key) == wanted) is not negated for key, wanted, negated in _requirements(fields))


@lru_cache(maxsize=64)
def _requirements(selector: str) -> tuple[tuple[str, str | None, bool], ...]:
    """Return key, value and negation of each requirement; the value is None if any will do."""
    requirements = []
    for requirement in filter(None, selector.split(",")):
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None:
            raise ValueError(f"selector {requirement!r} is not supported")
        negated = bool(match["absent"]) or (match["operator"] or "").startswith("!")
        requirements.append((match["key"], match["value"], negated))
    return tuple(requirements)


def _field(body: Any, path: str) -> str:
    for name in path.split("."):
        body = body.get(name) if isinstance(body, dict) else None
    return "" if body is None else str(body)
