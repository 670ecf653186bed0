"""Lists and watches what gangs are made of, for `muster get` and `muster view`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from muster.cluster.errors import ApiGone, Forbidden
from muster.cluster.http.client import Client
from muster.local.stories.watching import TimelineRecorder
from muster.objects import versions
from muster.objects.resources import POD_GROUPS, PODS, WORKLOADS, Resource
from muster.policy.group_labels import GROUP
from muster.replay.gangs import KINDS_OF_GANGS
from muster.replay.snapshots import Object, Objects


class GangReader:
    """Reads kinds of one namespace or of all, of pods only those with a group label, in the shape of v1beta1.

    Attributes:
        not_read: why a kind could not be read, by its plural; no kind that need not be installed.
    """

    def __init__(self, client: Client, namespace: str = "") -> None:
        self._client = client
        self._namespace = namespace
        self._version = versions.choose(client.served_versions(versions.GROUP)).version
        self.not_read: dict[str, str] = {}

    def objects(self) -> Objects:
        """Return what the gangs are made of, as far as it may be read."""
        found = {kind: self._list(kind) for kind in KINDS_OF_GANGS}
        return [body for objects in found.values() for body in objects or ()]

    @contextmanager
    def following(self, more: Iterable[Resource] = ()) -> Iterator[TimelineRecorder]:
        """Yield a recorder of the changes of what can be read; with further kinds."""
        kinds = [kind for kind in (*KINDS_OF_GANGS, *more) if self._list(kind) is not None]
        with TimelineRecorder(self, kinds) as recorder:
            yield recorder

    def list_with_version(self, resource: Resource) -> tuple[Objects, str]:
        """Return the objects of a kind, and the resourceVersion from which a watch sees later changes."""
        served, place, labels = self._place_of(resource)
        objects, version = self._client.list_with_version(served, place, labels=labels)
        return list(map(versions.from_served, objects)), version

    def watch(self, resource: Resource, **options: Any) -> Iterator[tuple[str, Object]]:
        """Yield the changes of a kind, as `Client.watch` does."""
        served, place, labels = self._place_of(resource)
        for change, body in self._client.watch(served, place, labels=labels, **options):
            yield change, versions.from_served(body)

    def _place_of(self, resource: Resource) -> tuple[Resource, str, str]:
        """Return the served resource, the namespace and the label selector."""
        if resource in (WORKLOADS, POD_GROUPS):
            if not self._version:
                raise ApiGone(versions.HOW_TO_SWITCH_ON, status=404)
            resource = replace(resource, version=self._version)
        return resource, self._namespace if resource.namespaced else "", GROUP if resource == PODS else ""

    def _list(self, kind: Resource) -> Objects | None:
        try:
            return self.list_with_version(kind)[0]
        except Forbidden as error:
            self.not_read[kind.plural] = error.message
        except ApiGone as error:
            if kind == POD_GROUPS:
                self.not_read[kind.plural] = error.message
        return None
