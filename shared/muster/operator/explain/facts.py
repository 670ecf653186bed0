"""Explain an object of a cluster or of files: an owner, or facts about a pod, group, policy or runtime."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from muster.cluster.interface import Cluster, Object
from muster.cluster.observe.members import pods_of_group
from muster.cluster.observe.owner import read_owner
from muster.objects.meta import KubernetesObject, ObjectRef, ref_of
from muster.objects.pods import Pod
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    TRAINING_RUNTIMES,
    WORKLOADS,
    Resource,
)
from muster.objects.scheduling import PodGroup, Workload
from muster.operator.explain.explanation import Explanation, explain, pod_waits_for
from muster.operator.explain.files import RUNTIMES, AssumedObjects, DryRunCluster, assume_cluster
from muster.policy.group_labels import GATE, GROUP, OPTED_OUT
from muster.policy.groups.manifests import FALLBACK
from muster.policy.owners import KINDS
from muster.policy.sources.source import (
    CONFIG_MAP,
    InvalidPolicy,
    PolicySource,
    PolicySourceKind,
    locked_fields,
    resolve_policy,
    source_of_config_map,
    sources_of_runtime,
)
from muster.replay.files import BadFileError
from muster.runtime.http.responses import first_fault
from muster.simulator.admitted import admitted
from muster.simulator.apiserver.status import ApiError


@dataclass(frozen=True)
class Facts:
    """An object and facts about it.

    Attributes:
        subject: the object.
        lines: one fact each, as `policy: valid: {...}`.
    """

    subject: ObjectRef
    lines: tuple[str, ...]


def facts_of(cluster: Cluster, body: Object, *, live: bool = False) -> Facts:
    """Return the facts of an object.

    Args:
        cluster: where the objects are that it names.
        body: a pod, PodGroup, Workload, ConfigMap or runtime.
        live: whether the cluster is a real one, where admission has stamped its pods.
    """
    ref = KubernetesObject.read(body).ref
    if ref.kind == "Pod":
        lines = _of_pod(cluster, Pod.read(body if live else _admitted(cluster, body)))
    elif ref.kind == POD_GROUPS.kind:
        lines = _of_group(cluster, PodGroup.read(body))
    elif ref.kind == CONFIGMAPS.kind:
        lines = _of_config_map(cluster, body)
    elif ref.kind in RUNTIMES:
        lines = _of_runtime(cluster, body)
    else:
        lines = _of_workload(Workload.read(body))
    return Facts(ref, tuple(lines))


def _admitted(cluster: Cluster, pod: Object) -> Object:
    """Return a pod as the admission policies leave it."""
    namespace = cluster.get(NAMESPACES, pod["metadata"]["namespace"]) or {"metadata": {}}
    try:
        stored = admitted(pod, namespace["metadata"].get("labels") or {})
    except ApiError:
        return pod
    return {**pod, "spec": stored["spec"]}


def _of_pod(cluster: Cluster, pod: Pod) -> Iterator[str]:
    label = pod.metadata.labels.get(GROUP)
    if label is None and not pod.pod_group_name:
        yield f"group: none: it has no label {GROUP}, and no spec.schedulingGroup"
    elif label == OPTED_OUT:
        yield f"group: none: its label {GROUP} is {OPTED_OUT}"
    elif not pod.pod_group_name:
        yield f"group: none: it has the label {GROUP}: {label}, but stamp-pods set no spec.schedulingGroup"
    else:
        yield f"group: {_group_in(cluster, pod)}"
    if GATE in pod.gates:
        yield f"gate: {GATE}, which patch_pods removes when the PodGroup exists"
    if pod.bound:
        yield f"node: {pod.spec.node_name}"
        return
    reason, since, message = pod_waits_for(pod)
    if reason:
        yield f"waits: {reason}{f' since {since}' if since else ''}: {message}"


def _group_in(cluster: Cluster, pod: Pod) -> str:
    """Return the PodGroup of a pod with its state, as text."""
    body = cluster.get(POD_GROUPS, pod.pod_group_name, pod.metadata.namespace)
    if body is None:
        return f"PodGroup {pod.pod_group_name}, which does not exist"
    return f"PodGroup {pod.pod_group_name}: {'; '.join(_state_of(PodGroup.read(body)))}"


def _state_of(group: PodGroup) -> Iterator[str]:
    """Yield the size of a group, why it is no gang, and the scheduler's answer."""
    count = group.spec.scheduling_policy.min_count
    yield f"gang of {count}" if count else "basic, no gang"
    if (fallback := group.metadata.annotations.get(FALLBACK)) is not None:
        yield f"a fallback PodGroup: {fallback}"
    if group.placed:
        yield "placed"
    elif group.refusal is not None:
        yield ": ".join(group.refusal)
    else:
        yield "the scheduler has not answered"


def _of_group(cluster: Cluster, group: PodGroup) -> Iterator[str]:
    yield from (f"group: {line}" for line in _state_of(group))
    pods = [pod for pod in pods_of_group(cluster, group) if not (pod.finished or pod.being_deleted)]
    bound, gated = sum(pod.bound for pod in pods), sum(GATE in pod.gates for pod in pods)
    held = f", {gated} with Muster's gate" if gated else ""
    yield f"pods: {len(pods)}, {bound} with a node{held}"


def _of_workload(workload: Workload) -> Iterator[str]:
    named = workload.spec.controller_ref
    yield f"owner: {f'{named.kind} {named.name}' if named.name else 'none: spec.controllerRef names none'}"
    for template, parent in workload.hierarchy():
        count = template.scheduling_policy.min_count
        size = f"gang of {count}" if count else "basic"
        yield f"template: {template.name}: {size}{f', below {parent}' if parent else ''}"


def _of_config_map(cluster: Cluster, body: Object) -> Iterator[str]:
    metadata = body["metadata"]
    if metadata["name"] != CONFIG_MAP:
        yield f"policy: none: policies are read from ConfigMaps of the name {CONFIG_MAP}"
        return
    administrators = metadata["namespace"] == cluster.policy_namespace
    kind = PolicySourceKind.CLUSTER if administrators else PolicySourceKind.NAMESPACE
    sources = source_of_config_map(body, kind)
    locks = locked_fields(body)
    if not (sources or locks):
        yield "policy: none: it has neither the key policy nor the key locked"
    for source in sources:
        where = "all namespaces" if administrators else f"namespace {metadata['namespace']}"
        yield f"policy: {policy_text(source, locks if administrators else _locks(cluster))}"
        yield f"applies to: the jobs of {where} for which no policy of higher precedence is written"
    for source in locks:
        if not administrators:
            yield f"locked: has no effect: fields are locked in namespace {cluster.policy_namespace} only"
        else:
            result = resolve_policy((source,))
            yield f"locked: {_fault(result, source) if isinstance(result, InvalidPolicy) else 'valid'}"


def _of_runtime(cluster: Cluster, body: Object) -> Iterator[str]:
    sources = sources_of_runtime(body)
    if not sources:
        yield "policy: none of its own"
    for source in sources:
        if source.kind is PolicySourceKind.UPSTREAM:
            yield f"policy: {source.where}: upstream groups its TrainJobs, Muster does not"
        else:
            yield f"policy: {source.where}: {policy_text(source, _locks(cluster))}"


def _locks(cluster: Cluster) -> tuple[PolicySource, ...]:
    """Return the fields that the administrator locked."""
    return locked_fields(cluster.get(CONFIGMAPS, CONFIG_MAP, cluster.policy_namespace) or {})


def policy_text(source: PolicySource, locks: Sequence[PolicySource]) -> str:
    """Return whether a policy can be used, with its fields or the first fault in it, as text."""
    result = resolve_policy((*locks, source))
    if isinstance(result, InvalidPolicy):
        return _fault(result, source)
    if result.workload is None:
        return f"valid: {result.other} groups these pods, Muster does not"
    fields: Mapping[str, object] = result.workload.model_dump(by_alias=True, exclude_unset=True, mode="json")
    return f"valid: {json.dumps(fields)}"


def _fault(result: InvalidPolicy, source: PolicySource) -> str:
    failure = result.failure
    return f"cannot be used: {failure.reason}: {failure.message.removeprefix(f'{source.where}: ')}"


_SHORT = {"pods": "po", "podgroups": "pg", "configmaps": "cm"}
_RESOURCES = (
    *(kind.resource for kind in KINDS),
    PODS,
    POD_GROUPS,
    WORKLOADS,
    CONFIGMAPS,
    TRAINING_RUNTIMES,
    CLUSTER_TRAINING_RUNTIMES,
)

EXPLAINED: Mapping[str, Resource] = {
    name: resource
    for resource in _RESOURCES
    for name in (resource.kind.lower(), resource.plural, _SHORT.get(resource.plural, resource.plural))
}
"""The kinds that can be explained by the names that a person may write, without their API group."""


def explain_live(cluster: Cluster, body: Object, now: datetime) -> Iterator[Facts | Explanation]:
    """Yield the explanation of an object of a cluster; of a pod or group also that of its owner."""
    ref = KubernetesObject.read(body).ref
    if ref.kind in RUNTIMES:
        yield facts_of(cluster, body)
        assumed = assume_cluster([body], cluster)
        yield from explain_owners(assumed, cluster, now)
        return
    if ref.kind in {kind.resource.kind for kind in KINDS}:
        yield explain(cluster, ref, now)
        return
    yield facts_of(cluster, body, live=True)
    if ref.kind != CONFIGMAPS.kind:
        live, _ = read_owner(cluster, ref)
        if live.owner is not None:
            yield explain(cluster, live.owner.ref, now)


def explain_owners(assumed: AssumedObjects, below: Cluster | None, now: datetime) -> Iterator[Explanation]:
    """Yield the explanation of each owner in files.

    Args:
        assumed: the objects of the files.
        below: the cluster to which they would be applied; None for none.
        now: the time in conditions and Events.

    Raises:
        BadFileError: a field of an object has the wrong type.
    """
    cluster = DryRunCluster(assumed.objects, below)
    for owner in assumed.owners:
        with _bad_fields(str(ref_of(owner))):
            yield explain(cluster, KubernetesObject.read(owner).ref, now)


def facts_of_files(assumed: AssumedObjects, below: Cluster | None) -> Iterator[Facts]:
    """Yield the facts of the objects in files that are explained by themselves.

    Raises:
        BadFileError: a field of an object has the wrong type.
    """
    cluster = DryRunCluster(assumed.objects, below)
    for body in assumed.others:
        with _bad_fields(f"{body['kind']} {body['metadata']['name']}"):
            yield facts_of(cluster, body)


@contextmanager
def _bad_fields(named: str) -> Iterator[None]:
    """Turn a field of the wrong type into BadFileError."""
    try:
        yield
    except ValidationError as error:
        path, message = first_fault(error)
        raise BadFileError(f"{named}: {path}", message) from None
