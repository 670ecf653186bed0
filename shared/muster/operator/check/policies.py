"""Check every policy that is written in the cluster, and the fields that the administrator locked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from muster.cluster.errors import ApiGone, Forbidden
from muster.cluster.interface import POLICY_NAMESPACE, Object, RawCluster
from muster.cluster.read import collect
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
from muster.objects.text import cut_to
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
from muster.policy.status.conditions import MESSAGE_LIMIT
from muster.simulator.overlays import Manifest, of_kind

_RUNTIMES = (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES)
_OWNERS = (TRAINJOBS, JOBSETS, JOBS)
_NAMED = f"metadata.name={CONFIG_MAP}"

MOST_FINDINGS = 1_000
"""The most invalid policies of a kind that are named: tenants can make any number, each with a long text."""
_ONE_MORE = Finding(Level.WARN, "", "")
"""Stands for a finding beyond those."""

_Item = TypeVar("_Item")


def check_policies(cluster: RawCluster, namespace: str) -> Iterator[Finding]:
    """Yield a finding for each policy that is invalid or may not be read, and the number of valid ones.

    Args:
        cluster: the cluster.
        namespace: the namespace of the administrator's ConfigMap.

    Raises:
        ClusterError: the API server does not answer.
    """
    unread: list[Finding] = []
    administrators = _collect(cluster, CONFIGMAPS, iter, [], namespace, fields=_NAMED)
    locks = [source for body in administrators for source in locked_fields(body)]
    if isinstance(resolve_policy(tuple(locks)), InvalidPolicy):
        yield from _invalid(locks[0], (), Level.FAIL)
        locks = []
    valid = len(locks)
    in_config_maps = partial(_checked_config_maps, locks, namespace)
    checked = _collect(cluster, CONFIGMAPS, partial(_limited, in_config_maps), unread, fields=_NAMED)
    for resource in _RUNTIMES:
        view = partial(_checked, locks, Level.FAIL, sources_of_runtime)
        checked += _collect(cluster, resource, partial(_limited, view), unread)
    for resource in _OWNERS:
        view = partial(_checked, locks, Level.WARN, _of_owner)
        checked += _collect(cluster, resource, partial(_limited, view), unread)
    valid += sum(finding is None for finding in checked)
    yield from (finding for finding in checked if finding is not None and finding is not _ONE_MORE)
    if left_out := sum(finding is _ONE_MORE for finding in checked):
        yield Finding(Level.WARN, "policies", f"{left_out} more are invalid")
    yield from unread
    yield Finding(Level.OK, "policies", f"{valid} are valid")


def policy_namespace(objects: Sequence[Manifest]) -> str:
    """Return the namespace in which the functions of an overlay read the administrator's ConfigMap."""
    for service in of_kind(objects, "Service"):
        for container in service["spec"]["template"]["spec"]["containers"]:
            variables = {variable["name"]: variable.get("value") for variable in container.get("env") or []}
            return str(variables.get("MUSTER_POLICY_NAMESPACE") or service["metadata"]["namespace"])
    return POLICY_NAMESPACE


def _of_config_map(body: Object, administrators: str) -> Iterable[PolicySource]:
    """Return the policies in a ConfigMap; one in the namespace `administrators` is for the whole cluster."""
    own = body["metadata"]["namespace"] == administrators
    return source_of_config_map(body, PolicySourceKind.CLUSTER if own else PolicySourceKind.NAMESPACE)


def _of_owner(body: Object) -> Iterator[PolicySource]:
    """Yield the policy in the annotation of an owner, if it has one."""
    text = (body["metadata"].get("annotations") or {}).get(ANNOTATION)
    if text is not None:
        where = f"annotation {ANNOTATION} of {KubernetesObject.read(body).ref}"
        yield PolicySource(PolicySourceKind.OWNER, where, text)


def _checked(
    locks: Sequence[PolicySource],
    level: Level,
    sources: Callable[[Object], Iterable[PolicySource]],
    bodies: Iterable[Object],
) -> Iterator[Finding | None]:
    """Yield the finding about each policy in some objects; None if it is valid.

    Args:
        locks: the locked fields.
        level: of a finding; FAIL where a policy concerns several owners.
        sources: returns the policies in an object.
        bodies: the objects.
    """
    for body in bodies:
        for source in sources(body):
            yield next(_invalid(source, locks, level), None)


def _limited(
    view: Callable[[Iterable[Object]], Iterator[Finding | None]], bodies: Iterable[Object]
) -> Iterator[Finding | None]:
    """Yield what a view yields, and _ONE_MORE for each finding beyond MOST_FINDINGS."""
    found = 0
    for finding in view(bodies):
        found += finding is not None
        yield finding if finding is None or found <= MOST_FINDINGS else _ONE_MORE


def _checked_config_maps(
    locks: Sequence[PolicySource], administrators: str, bodies: Iterable[Object]
) -> Iterator[Finding | None]:
    """Yield as `_checked`, and a finding for each ConfigMap with locked fields that have no effect."""
    sources = partial(_of_config_map, administrators=administrators)
    for body in bodies:
        yield from _checked(locks, Level.FAIL, sources, [body])
        yield from _misplaced_locks(body, administrators)


def _invalid(source: PolicySource, locks: Sequence[PolicySource], level: Level) -> Iterator[Finding]:
    """Yield a finding if a policy is invalid by itself or sets a locked field."""
    policy = resolve_policy((*locks, source))
    if isinstance(policy, InvalidPolicy):
        message = policy.failure.message.removeprefix(f"{source.where}: ")
        yield Finding(level, source.where, f"{policy.failure.reason}: {cut_to(message, MESSAGE_LIMIT)}")


def _misplaced_locks(body: Object, administrators: str) -> Iterator[Finding]:
    """Yield a finding for locked fields in another namespace, where they have no effect."""
    if body["metadata"]["namespace"] != administrators:
        for source in locked_fields(body):
            message = f"has no effect: fields are locked in namespace {administrators} only"
            yield Finding(Level.WARN, source.where, message)


def _collect(
    cluster: RawCluster,
    resource: Resource,
    view: Callable[[Iterable[Object]], Iterable[_Item]],
    unread: list[Finding],
    namespace: str = "",
    *,
    fields: str = "",
) -> list[_Item]:
    """Return everything that `view` yields from the objects of a kind.

    The list is empty if the kind is not served and, with a finding, if it may not be read.
    """
    try:
        return collect(cluster, resource, view, namespace, fields=fields)
    except ApiGone:
        return []
    except Forbidden as error:
        unread.append(Finding(Level.WARN, f"policies of {resource.plural}", f"not checked: {error.message}"))
        return []
