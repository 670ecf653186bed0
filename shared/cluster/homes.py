"""Reading the policy that rules an owner: the first home from the top that has one ends the search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from shared.cluster.port import Cluster
from shared.objects.jobs import TrainJob
from shared.objects.resources import CLUSTER_TRAINING_RUNTIMES, CONFIGMAPS, TRAINING_RUNTIMES
from shared.policy.homes import ANNOTATION, CONFIG_MAP, CONFIG_MAP_KEY
from shared.policy.model import Home, HomeKind, Observed

_SNAPSHOT = "-runtime-snapshot"
"""Suffix of the ConfigMap in which the Trainer keeps the runtime a TrainJob started with (v2.3.0)."""


def of(cluster: Cluster, observed: Observed) -> tuple[Home, ...]:
    """The highest home of an owner that has a policy; empty where the built-in default rules."""
    found = next(_homes(cluster, observed), None)
    return (found,) if found else ()


def _homes(cluster: Cluster, observed: Observed) -> Iterator[Home]:
    owner = observed.owner
    if owner is None:
        return
    for carrier in (owner, observed.jobset):
        if carrier is not None and ANNOTATION in carrier.metadata.annotations:
            text = carrier.metadata.annotations[ANNOTATION]
            yield Home(HomeKind.OWNER, f"annotation {ANNOTATION} of {carrier.ref}", text)
    if isinstance(owner, TrainJob):
        yield from _of_runtime(_runtime(cluster, owner))
    body = cluster.get(CONFIGMAPS, CONFIG_MAP, owner.metadata.namespace)
    data = (body or {}).get("data") or {}
    if CONFIG_MAP_KEY in data:
        where = f"ConfigMap {owner.metadata.namespace}/{CONFIG_MAP}, key {CONFIG_MAP_KEY}"
        yield Home(HomeKind.NAMESPACE, where, data[CONFIG_MAP_KEY])


def _of_runtime(runtime: Mapping[str, Any]) -> Iterator[Home]:
    metadata = runtime.get("metadata") or {}
    named = f"{runtime.get('kind', 'runtime')} {metadata.get('name', '')}"
    text = (metadata.get("annotations") or {}).get(ANNOTATION)
    if text is not None:
        yield Home(HomeKind.RUNTIME, f"annotation {ANNOTATION} of {named}", text)
    field = (runtime.get("spec") or {}).get("podGroupPolicy")
    if field:
        yield Home(HomeKind.RUNTIME_SPEC, f"spec.podGroupPolicy of {named}", field)


def _runtime(cluster: Cluster, trainjob: TrainJob) -> Mapping[str, Any]:
    """The runtime as it was when the TrainJob started, else as it is; {} where there is none."""
    meta, ref = trainjob.metadata, trainjob.spec.runtime_ref
    snapshot = cluster.get(CONFIGMAPS, f"{meta.name}{_SNAPSHOT}", meta.namespace)
    if snapshot is not None:
        kept = yaml.safe_load((snapshot.get("data") or {}).get("runtime") or "{}")
        return kept if isinstance(kept, Mapping) else {}
    if ref.kind == TRAINING_RUNTIMES.kind:
        return cluster.get(TRAINING_RUNTIMES, ref.name, meta.namespace) or {}
    return cluster.get(CLUSTER_TRAINING_RUNTIMES, ref.name) or {}
