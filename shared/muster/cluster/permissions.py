"""The permissions that a function needs: a test compares those of each step.py with eventing/rbac."""

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
from muster.policy.sources.source import CONFIG_MAP


@dataclass(frozen=True)
class Permission:
    """One verb on one resource, or on its subresource or its only object `name`, as in RBAC."""

    verb: str
    resource: Resource
    subresource: str = ""
    name: str = ""

    def __str__(self) -> str:
        plural, group = self.resource.plural, self.resource.group
        text = f"{self.verb} {plural}.{group}" if group else f"{self.verb} {plural}"
        text = f"{text}/{self.subresource}" if self.subresource else text
        return f"{text} {self.name}" if self.name else text


Permissions = frozenset[Permission]


def may(verbs: str, *resources: Resource, subresource: str = "", name: str = "") -> Permissions:
    """Return permissions for each verb of a list such as `"get list"`, on each resource."""
    return frozenset(
        Permission(verb, resource, subresource, name) for verb in verbs.split() for resource in resources
    )


_OWNERS = tuple(kind.resource for kind in KINDS if not kind.is_job)
_JOBS = tuple(kind.resource for kind in KINDS if kind.is_job)

READ_OWNER = (
    may("get list", *_JOBS, WORKLOADS, POD_GROUPS)
    | may("get", *_OWNERS, NAMESPACES)
    | may("get", TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
    | may("get", CONFIGMAPS, name=CONFIG_MAP)
)
"""To read an owner, its policy and its groups (the modules owner and members of `muster.cluster.observe`)."""

SWEEP = may("list", NAMESPACES)
"""To sweep one namespace after another, as every step does."""

READ_OWNERS = READ_OWNER | may("list", *_OWNERS)
"""To read an owner, and to list all owners in a sweep."""

READ_COMPOSITES = may("get list", COMPOSITE_POD_GROUPS)
"""To read the CompositePodGroups of an owner."""

REPORT_TO_OWNERS = may("patch", *_OWNERS, *_JOBS, subresource="status") | may("create", EVENTS)
"""To write conditions of owners, and Events about them."""


def missing_permissions(
    cluster: RawCluster, needed: Iterable[Permission], namespace: str, manager: str
) -> Permissions:
    """Return the needed permissions that the caller does not have: one SelfSubjectAccessReview for each."""
    return frozenset(
        permission for permission in needed if not _is_allowed(cluster, permission, namespace, manager)
    )


def _is_allowed(cluster: RawCluster, permission: Permission, namespace: str, manager: str) -> bool:
    resource, reviews = permission.resource, SELF_SUBJECT_ACCESS_REVIEWS
    attributes = {
        "verb": permission.verb,
        "group": resource.group,
        "resource": resource.plural,
        "subresource": permission.subresource,
        "name": permission.name,
        # A request for a Namespace itself counts as one inside it, so that a Role can grant it.
        "namespace": namespace if resource.namespaced or resource == NAMESPACES else "",
    }
    identity = {"apiVersion": reviews.api_version, "kind": reviews.kind, "metadata": {}}
    body = identity | {"spec": {"resourceAttributes": attributes}}
    target = ObjectRef(reviews.api_version, reviews.kind, "", "")
    return bool(cluster.write(Action(Verb.CREATE, target, body), manager)["status"]["allowed"])
