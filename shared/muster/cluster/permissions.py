"""The permissions that a function needs, and asking the API server for them.

Each step names its permissions in its step.py; a test compares them with its role in eventing/rbac.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from muster.cluster.interface import RawCluster
from muster.objects.meta import ObjectRef
from muster.objects.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    COMPOSITE_POD_GROUPS,
    CONFIGMAPS,
    EVENTS,
    NAMESPACES,
    POD_GROUPS,
    SELF_SUBJECT_ACCESS_REVIEWS,
    TRAINING_RUNTIMES,
    WORKLOADS,
    Resource,
)
from muster.policy.model import Action, Verb
from muster.policy.owners import KINDS


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


_OWNERS = tuple(kind.resource for kind in KINDS if not kind.is_job)
_JOBS = tuple(kind.resource for kind in KINDS if kind.is_job)

READ_OWNER = (
    may("get list", *_JOBS, WORKLOADS, POD_GROUPS)
    | may("get", *_OWNERS, NAMESPACES)
    | may("get", TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES, CONFIGMAPS)
)
"""To read an owner, its policy and its groups (`muster.cluster.read`)."""

READ_OWNERS = READ_OWNER | may("list", *_OWNERS)
"""The same, and all owners in a sweep."""

READ_COMPOSITES = may("get", COMPOSITE_POD_GROUPS)
"""To read the CompositePodGroups of an owner."""

REPORT_TO_OWNERS = may("patch", *_OWNERS, *_JOBS, subresource="status") | may("create", EVENTS)
"""To write conditions of owners, and Events about them."""


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
    identity = {
        "apiVersion": SELF_SUBJECT_ACCESS_REVIEWS.api_version,
        "kind": SELF_SUBJECT_ACCESS_REVIEWS.kind,
        "metadata": {},
    }
    review = cluster.write(
        Action(
            Verb.CREATE,
            ObjectRef(SELF_SUBJECT_ACCESS_REVIEWS.api_version, SELF_SUBJECT_ACCESS_REVIEWS.kind, "", ""),
            identity | {"spec": {"resourceAttributes": attributes}},
        ),
        manager,
    )
    return bool(review["status"]["allowed"])
