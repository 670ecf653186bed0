"""Reading the policy sources of an owner, from the highest down to the first that has a policy."""

from __future__ import annotations

from collections.abc import Iterator

from muster.cluster.interface import Cluster, Object
from muster.objects.pods import Pod
from muster.objects.resources import CONFIGMAPS, by_kind
from muster.policy.owners import known_kind_of
from muster.policy.owners.kind import OwnerObject
from muster.policy.resolve import LiveOwner
from muster.policy.sources.source import (
    ANNOTATION,
    CONFIG_MAP,
    PolicySource,
    PolicySourceKind,
    locked_fields,
    source_of_config_map,
    source_of_workload,
    sources_of_runtime,
)


def effective(cluster: Cluster, live: LiveOwner) -> tuple[PolicySource, ...]:
    """Return the highest policy source and the locked fields: those of Muster's Workload once it exists."""
    if live.owner is None:
        return ()
    if live.musters_workload is not None:
        return source_of_workload(live.musters_workload)
    sources: list[PolicySource] = []
    for source in of_owner(cluster, live.owner, live.runner):
        sources.append(source)
        if source.kind != PolicySourceKind.LOCKED:
            break
    return tuple(sources)


def of_owner(cluster: Cluster, owner: OwnerObject, runner: OwnerObject | None) -> Iterator[PolicySource]:
    """Yield all policy sources of an owner, highest first; each is read when it is asked for.

    Above all others is a runtime that leaves the groups to upstream; then come the locked fields, which apply
    to all policies below. The Trainer's snapshot of the runtime is not read: a tenant can write it, and it
    lacks `podGroupPolicy.workload`.
    """
    ref, runtime = known_kind_of(owner).runtime(owner), None
    if ref is not None:
        runtime = cluster.get(by_kind(ref.api_version, ref.kind), ref.name, ref.namespace)
    of_runtime = sources_of_runtime(runtime or {})
    yield from (source for source in of_runtime if source.kind == PolicySourceKind.UPSTREAM)
    administrators = cluster.get(CONFIGMAPS, CONFIG_MAP, cluster.policy_namespace) or {}
    yield from locked_fields(administrators)
    for carrier in (owner, runner if runner is not owner else None):
        if carrier is not None and ANNOTATION in carrier.metadata.annotations:
            text = carrier.metadata.annotations[ANNOTATION]
            yield PolicySource(PolicySourceKind.OWNER, f"annotation {ANNOTATION} of {carrier.ref}", text)
    yield from (source for source in of_runtime if source.kind != PolicySourceKind.UPSTREAM)
    yield from _of_config_maps(cluster, owner.metadata.namespace, administrators)


def of_pod(cluster: Cluster, pod: Pod) -> tuple[PolicySource, ...]:
    """Return all policy sources of a pod that names its gang itself, highest first."""
    namespace, text = pod.metadata.namespace, pod.metadata.annotations.get(ANNOTATION)
    administrators = cluster.get(CONFIGMAPS, CONFIG_MAP, cluster.policy_namespace) or {}
    where = f"annotation {ANNOTATION} of the pod template"
    of_owner = () if text is None else (PolicySource(PolicySourceKind.OWNER, where, text),)
    of_maps = _of_config_maps(cluster, namespace, administrators)
    return (*locked_fields(administrators), *of_owner, *of_maps)


def _of_config_maps(cluster: Cluster, namespace: str, administrators: Object) -> Iterator[PolicySource]:
    if namespace != cluster.policy_namespace:
        body = cluster.get(CONFIGMAPS, CONFIG_MAP, namespace) or {}
        yield from source_of_config_map(body, PolicySourceKind.NAMESPACE)
    yield from source_of_config_map(administrators, PolicySourceKind.CLUSTER)
