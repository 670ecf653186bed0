"""Check every policy that is written in the cluster, and the fields that the administrator locked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.cluster.errors import ApiGone, Forbidden
from muster.cluster.interface import POLICY_NAMESPACE, Object, RawCluster
from muster.kustomize import Manifest, of_kind
from muster.objects.meta import KubernetesObject
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    JOBS,
    JOBSETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    Resource,
)
from muster.operator.check.preflight import Finding, Level
from muster.policy.sources.source import (
    ANNOTATION,
    CONFIG_MAP,
    InvalidPolicy,
    PolicySource,
    PolicySourceKind,
    locked_fields,
    resolve_policy,
    source_of_config_map,
    sources_of_runtime,
)

_RUNTIMES = (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)
_OWNERS = (TRAINJOBS, JOBSETS, JOBS)


def check_policies(cluster: RawCluster, namespace: str) -> Iterator[Finding]:
    """Yield a finding for each policy that is invalid or may not be read, and the number of valid ones.

    Args:
        cluster: the cluster.
        namespace: the namespace of the administrator's ConfigMap.

    Raises:
        ClusterError: the API server does not answer.
    """
    unread: list[Finding] = []
    config_maps = list(_list(cluster, CONFIGMAPS, unread, fields=f"metadata.name={CONFIG_MAP}"))
    administrators = [body for body in config_maps if body["metadata"]["namespace"] == namespace]
    locks = [source for body in administrators for source in locked_fields(body)]
    if isinstance(resolve_policy(tuple(locks)), InvalidPolicy):
        yield from _invalid(locks[0], (), Level.FAIL)
        locks = []
    valid = len(locks)
    for source, level in _sources(cluster, config_maps, namespace, unread):
        broken = list(_invalid(source, locks, level))
        valid += not broken
        yield from broken
    yield from unread
    yield from _misplaced_locks(config_maps, namespace)
    yield Finding(Level.OK, "policies", f"{valid} are valid")


def policy_namespace(objects: Sequence[Manifest]) -> str:
    """Return the namespace in which the functions of an overlay read the administrator's ConfigMap."""
    for service in of_kind(objects, "Service"):
        for container in service["spec"]["template"]["spec"]["containers"]:
            variables = {variable["name"]: variable.get("value") for variable in container.get("env") or []}
            return str(variables.get("MUSTER_POLICY_NAMESPACE") or service["metadata"]["namespace"])
    return POLICY_NAMESPACE


def _sources(
    cluster: RawCluster, config_maps: Sequence[Object], administrators: str, unread: list[Finding]
) -> Iterator[tuple[PolicySource, Level]]:
    """Yield every policy with the level of a finding about it: FAIL where it concerns several owners."""
    for body in config_maps:
        own = body["metadata"]["namespace"] == administrators
        kind = PolicySourceKind.CLUSTER if own else PolicySourceKind.NAMESPACE
        yield from ((source, Level.FAIL) for source in source_of_config_map(body, kind))
    for resource in _RUNTIMES:
        for body in _list(cluster, resource, unread):
            yield from ((source, Level.FAIL) for source in sources_of_runtime(body))
    for resource in _OWNERS:
        for body in _list(cluster, resource, unread):
            text = (body["metadata"].get("annotations") or {}).get(ANNOTATION)
            if text is not None:
                ref = KubernetesObject.read(body).ref
                where = f"annotation {ANNOTATION} of {ref}"
                yield PolicySource(PolicySourceKind.OWNER, where, text), Level.WARN


def _invalid(source: PolicySource, locks: Sequence[PolicySource], level: Level) -> Iterator[Finding]:
    """Yield a finding if a policy is invalid by itself or sets a locked field."""
    policy = resolve_policy((*locks, source))
    if isinstance(policy, InvalidPolicy):
        message = policy.failure.message.removeprefix(f"{source.where}: ")
        yield Finding(level, source.where, f"{policy.failure.reason}: {message}")


def _misplaced_locks(config_maps: Sequence[Object], administrators: str) -> Iterator[Finding]:
    """Yield a finding for locked fields in another namespace, where they have no effect."""
    for body in config_maps:
        if body["metadata"]["namespace"] != administrators:
            for source in locked_fields(body):
                message = f"has no effect: fields are locked in namespace {administrators} only"
                yield Finding(Level.WARN, source.where, message)


def _list(
    cluster: RawCluster, resource: Resource, unread: list[Finding], *, fields: str = ""
) -> list[Object]:
    """Return all objects of a kind; none if it is not served, or, with a finding, if they may not be read."""
    try:
        return [
            {"apiVersion": resource.api_version, "kind": resource.kind, **body}
            for body in cluster.list(resource, fields=fields)
        ]
    except ApiGone:
        return []
    except Forbidden as error:
        unread.append(Finding(Level.WARN, f"policies of {resource.plural}", f"not checked: {error.message}"))
        return []
