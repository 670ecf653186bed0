"""Explain an object of a live cluster, or the objects of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from pydantic import ValidationError

from muster.cluster.interface import Cluster, Object
from muster.cluster.observe.owner import read_owner
from muster.objects.meta import KubernetesObject, ref_of
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    POD_GROUPS,
    PODS,
    TRAINING_RUNTIMES,
    WORKLOADS,
    Resource,
)
from muster.operator.explain.explanation import Explanation, explain
from muster.operator.explain.facts import Facts, facts_of
from muster.operator.explain.files import RUNTIMES, AssumedObjects, DryRunCluster, assume_cluster
from muster.policy.owners import KINDS
from muster.replay.files import BadFileError
from muster.runtime.http.responses import first_fault

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
