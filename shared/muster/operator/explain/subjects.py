"""Explain an object of a live cluster, or the objects of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from pydantic import ValidationError

from muster.cluster.interface import Cluster, Object
from muster.cluster.observe.owner import read_owner
from muster.objects.meta import KubernetesObject, ObjectRef
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIGMAPS,
    POD_GROUPS,
    PODS,
    TRAINING_RUNTIMES,
    WORKLOADS,
    Resource,
)
from muster.operator.explain.assumptions import RUNTIMES, AssumedObjects, assume_cluster
from muster.operator.explain.dry_run import DryRunCluster
from muster.operator.explain.explanation import Explanation, explain
from muster.operator.explain.facts import Facts, facts_of
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


def explain_owners(
    assumed: AssumedObjects,
    below: Cluster | None,
    now: datetime,
    explaining: Callable[[str], object] = lambda _owner: None,
) -> Iterator[Explanation]:
    """Yield the explanation of each owner in files.

    Args:
        assumed: the objects of the files.
        below: the cluster to which they would be applied; None for none.
        now: the time in conditions and Events.
        explaining: called with the owner, `7 of 90: Job team-a/sweep`, before it is looked at.

    Raises:
        BadFileError: a field of an object has the wrong type.
    """
    cluster = DryRunCluster(assumed.objects, below)
    for number, owner in enumerate(assumed.owners, start=1):
        ref = _ref_of(owner)
        explaining(f"{number} of {len(assumed.owners)}: {ref}")
        try:
            yield explain(cluster, ref, now)
        except ValidationError as error:
            path, message = first_fault(error)
            raise BadFileError(f"{ref}: {path}", message) from None


def facts_of_files(
    assumed: AssumedObjects, below: Cluster | None, explaining: Callable[[str], object] = lambda _owner: None
) -> Iterator[Facts]:
    """Yield the facts of the objects in files that are explained by themselves; `explaining` as for owners.

    Raises:
        BadFileError: a field of an object has the wrong type.
    """
    cluster = DryRunCluster(assumed.objects, below)
    for number, body in enumerate(assumed.others, start=1):
        explaining(f"{number} of {len(assumed.others)}: {body['kind']} {body['metadata']['name']}")
        try:
            yield facts_of(cluster, body)
        except ValidationError as error:
            path, message = first_fault(error)
            raise BadFileError(f"{body['kind']} {body['metadata']['name']}: {path}", message) from None


def _ref_of(body: Object) -> ObjectRef:
    metadata = body["metadata"]
    return ObjectRef(
        body["apiVersion"], body["kind"], metadata.get("namespace", ""), metadata["name"], metadata["uid"]
    )
