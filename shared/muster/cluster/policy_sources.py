"""Reading the policy sources of an owner, from the highest down to the first that has a policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from muster.cluster.interface import Cluster
from muster.objects import yaml_files
from muster.objects.meta import KubernetesObject
from muster.objects.resources import CONFIGMAPS, by_kind
from muster.policy.owners import known_kind_of
from muster.policy.owners.kind import OwnerObject
from muster.policy.resolve import LiveOwner
from muster.policy.sources.source import (
    ANNOTATION,
    CONFIG_MAP,
    CONFIG_MAP_KEY,
    PolicySource,
    PolicySourceKind,
    source_of_workload,
    sources_of_runtime,
)

_SNAPSHOT = "-runtime-snapshot"
"""Suffix of the ConfigMap in which the Trainer keeps the runtime a TrainJob started with (v2.3.0)."""


def effective(cluster: Cluster, live: LiveOwner) -> tuple[PolicySource, ...]:
    """The highest policy source of an owner; empty for the built-in default.

    Once the owner has a Workload of Muster's, the policy that it was made under is the only one.
    """
    if live.owner is None:
        return ()
    if live.workload is not None and live.workload_is_ours:
        return source_of_workload(live.workload)
    first = next(every(cluster, live.owner, live.runner), None)
    return (first,) if first else ()


def every(cluster: Cluster, owner: OwnerObject, runner: OwnerObject | None) -> Iterator[PolicySource]:
    """All policy sources of an owner, highest first; each is read when it is asked for.

    Above all others is a runtime that leaves the groups to upstream.
    """
    of_runtime = tuple(_sources_of_its_runtime(cluster, owner))
    yield from (source for source in of_runtime if source.kind == PolicySourceKind.UPSTREAM)
    for carrier in (owner, runner if runner is not owner else None):
        if carrier is not None and ANNOTATION in carrier.metadata.annotations:
            text = carrier.metadata.annotations[ANNOTATION]
            yield PolicySource(PolicySourceKind.OWNER, f"annotation {ANNOTATION} of {carrier.ref}", text)
    yield from (source for source in of_runtime if source.kind != PolicySourceKind.UPSTREAM)
    body = cluster.get(CONFIGMAPS, CONFIG_MAP, owner.metadata.namespace)
    data = (body or {}).get("data") or {}
    if CONFIG_MAP_KEY in data:
        where = f"ConfigMap {owner.metadata.namespace}/{CONFIG_MAP}, key {CONFIG_MAP_KEY}"
        yield PolicySource(PolicySourceKind.NAMESPACE, where, data[CONFIG_MAP_KEY])


def _sources_of_its_runtime(cluster: Cluster, owner: OwnerObject) -> Iterator[PolicySource]:
    """The sources of an owner's runtime as it was when the owner started, else as it is."""
    ref = known_kind_of(owner).runtime(owner)
    if ref is None:
        return
    meta = owner.metadata
    name = f"{meta.name}{_SNAPSHOT}"
    snapshot = cluster.get(CONFIGMAPS, name, meta.namespace)
    if snapshot is None or not _is_controlled_by(snapshot, meta.uid):
        resource = by_kind(ref.api_version, ref.kind)
        yield from sources_of_runtime(cluster.get(resource, ref.name, ref.namespace) or {})
        return
    text = (snapshot.get("data") or {}).get("runtime") or "{}"
    try:
        kept = yaml_files.load(text)
    except yaml.YAMLError:
        where = f"ConfigMap {meta.namespace}/{name}, key runtime"
        yield PolicySource(PolicySourceKind.RUNTIME, where, text)
        return
    yield from sources_of_runtime(kept if isinstance(kept, Mapping) else {})


def _is_controlled_by(body: Mapping[str, Any], uid: str) -> bool:
    """Whether an object belongs to the owner of that UID: an earlier TrainJob may have left its snapshot."""
    controller = KubernetesObject.read(body).metadata.controller
    return controller is not None and controller.uid == uid
