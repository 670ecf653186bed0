"""Reading the policy that rules an owner: the first home from the top that has one ends the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from muster.cluster.port import Cluster
from muster.objects.jobs import JobSet, TrainJob
from muster.objects.meta import KubernetesObject
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, CONFIGMAPS, TRAINING_RUNTIMES
from muster.policy.bodies import belongs_to
from muster.policy.homes import ANNOTATION, CONFIG_MAP, CONFIG_MAP_KEY, of_runtime, stored
from muster.policy.model import Home, HomeKind, Observed, Owner

_SNAPSHOT = "-runtime-snapshot"
"""Suffix of the ConfigMap in which the Trainer keeps the runtime a TrainJob started with (v2.3.0)."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C reads a runtime in a millisecond instead of ten."""


def of(cluster: Cluster, observed: Observed) -> tuple[Home, ...]:
    """The highest home of an owner that has a policy; empty where the built-in default rules.

    Once there is a Workload for the owner, the policy it was made under is the only one.
    """
    if observed.owner is None:
        return ()
    made = observed.workload
    if made is not None and belongs_to(made.metadata.labels, observed.owner.metadata.uid):
        return stored(made)
    found = next(every(cluster, observed.owner, observed.jobset), None)
    return (found,) if found else ()


def every(cluster: Cluster, owner: Owner, jobset: JobSet | None) -> Iterator[Home]:
    """All homes of an owner that have a policy, highest first; read one by one as they are asked for.

    Above all of them stands a runtime that leaves the groups to somebody upstream.
    """
    of_its_runtime = tuple(_of_trainjobs_runtime(cluster, owner)) if isinstance(owner, TrainJob) else ()
    yield from (home for home in of_its_runtime if home.kind == HomeKind.UPSTREAM)
    for carrier in (owner, jobset if jobset is not owner else None):
        if carrier is not None and ANNOTATION in carrier.metadata.annotations:
            text = carrier.metadata.annotations[ANNOTATION]
            yield Home(HomeKind.OWNER, f"annotation {ANNOTATION} of {carrier.ref}", text)
    yield from (home for home in of_its_runtime if home.kind != HomeKind.UPSTREAM)
    body = cluster.get(CONFIGMAPS, CONFIG_MAP, owner.metadata.namespace)
    data = (body or {}).get("data") or {}
    if CONFIG_MAP_KEY in data:
        where = f"ConfigMap {owner.metadata.namespace}/{CONFIG_MAP}, key {CONFIG_MAP_KEY}"
        yield Home(HomeKind.NAMESPACE, where, data[CONFIG_MAP_KEY])


def _of_trainjobs_runtime(cluster: Cluster, trainjob: TrainJob) -> Iterator[Home]:
    """The runtime as it was when the TrainJob started, else as it is."""
    meta, ref = trainjob.metadata, trainjob.spec.runtime_ref
    name = f"{meta.name}{_SNAPSHOT}"
    snapshot = cluster.get(CONFIGMAPS, name, meta.namespace)
    if snapshot is not None and _is_controlled_by(snapshot, meta.uid):
        text = (snapshot.get("data") or {}).get("runtime") or "{}"
        try:
            kept = yaml.load(text, _LOADER)  # noqa: S506 - a SafeLoader
        except yaml.YAMLError:
            yield Home(HomeKind.RUNTIME, f"ConfigMap {meta.namespace}/{name}, key runtime", text)
            return
        yield from of_runtime(kept if isinstance(kept, Mapping) else {})
    elif ref.kind == TRAINING_RUNTIMES.kind:
        yield from of_runtime(cluster.get(TRAINING_RUNTIMES, ref.name, meta.namespace) or {})
    else:
        yield from of_runtime(cluster.get(CLUSTER_TRAINING_RUNTIMES, ref.name) or {})


def _is_controlled_by(body: Mapping[str, Any], uid: str) -> bool:
    """As the Trainer looks at it: a snapshot that an earlier TrainJob of that name left is not read."""
    controller = KubernetesObject.read(body).metadata.controller
    return controller is not None and controller.uid == uid
