"""What a function must be allowed to do, and asking the API server whether it is.

Each step names its permissions beside its code; a test holds them to what its role in eventing/rbac grants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.port import RawCluster
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    COMPOSITE_POD_GROUPS,
    CONFIGMAPS,
    EVENTS,
    JOBS,
    JOBSETS,
    NAMESPACES,
    POD_GROUPS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    WORKLOADS,
    Resource,
)

REVIEWS = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    namespaced=False,
)


@dataclass(frozen=True)
class Permission:
    """One verb on one resource, as RBAC has them.

    Attributes:
        verb: `get`, `list`, `create`, `update`, `patch` or `delete`.
        resource: of what; RBAC does not look at its version.
        subresource: `status`, or empty for the object itself.
    """

    verb: str
    resource: Resource
    subresource: str = ""

    def __str__(self) -> str:
        plural, group = self.resource.plural, self.resource.group
        spelled = f"{self.verb} {plural}.{group}" if group else f"{self.verb} {plural}"
        return f"{spelled}/{self.subresource}" if self.subresource else spelled


Permissions = frozenset[Permission]


def may(verbs: str, *resources: Resource, subresource: str = "") -> Permissions:
    """Permissions for each of some verbs, separated by blanks, on each of some resources."""
    return frozenset(
        Permission(verb, resource, subresource) for verb in verbs.split() for resource in resources
    )


READ_GROUPS_OF_ONE = (
    may("get list", JOBS, WORKLOADS, POD_GROUPS)
    | may("get", TRAINJOBS, JOBSETS, NAMESPACES)
    | may("get", TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, CONFIGMAPS)
)
"""To read an owner, the policy that rules it and what was made for it (`muster.cluster.observe`)."""

READ_GROUPS = READ_GROUPS_OF_ONE | may("list", TRAINJOBS, JOBSETS)
"""Likewise, and in a sweep all owners."""

READ_GROUPS_ABOVE = may("get", COMPOSITE_POD_GROUPS)
"""To read the groups of those groups as well."""

TELL_OWNERS = may("patch", TRAINJOBS, JOBSETS, JOBS, subresource="status") | may("create", EVENTS)
"""To write conditions on owners, and Events about them."""


def lacking(cluster: RawCluster, needed: Iterable[Permission], namespace: str, manager: str) -> Permissions:
    """Those permissions that the caller does not have: one SelfSubjectAccessReview for each.

    A SelfSubjectRulesReview would be one call, but it tells of one namespace, not what is granted in all of
    them, and may be incomplete where RBAC is not the only authorizer.

    Args:
        cluster: where; who is asked about is whoever its credentials name.
        needed: what to ask for.
        namespace: where a Role is all there is; empty asks for all namespaces.
        manager: the field manager, as for every create.

    Raises:
        ClusterError: the API server does not answer, or does not let the caller ask.
    """
    return frozenset(one for one in needed if not _allowed(cluster, one, namespace, manager))


def _allowed(cluster: RawCluster, permission: Permission, namespace: str, manager: str) -> bool:
    resource = permission.resource
    # A request for a Namespace itself counts as one inside it, so that a Role can grant it.
    inside = namespace if resource.namespaced or resource == NAMESPACES else ""
    attributes = {
        "verb": permission.verb,
        "group": resource.group,
        "resource": resource.plural,
        "subresource": permission.subresource,
        "namespace": inside,
    }
    identity = {"apiVersion": REVIEWS.api_version, "kind": REVIEWS.kind, "metadata": {}}
    review = cluster.create(REVIEWS, identity | {"spec": {"resourceAttributes": attributes}}, manager=manager)
    return bool(review["status"]["allowed"])
