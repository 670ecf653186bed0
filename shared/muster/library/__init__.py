"""The public names of Muster for steps of one's own; `from muster import Step` finds them here.

Everything else may change without notice, except `muster.testing` and the names that docs/composing.md lists.
A test compares this list with docs/library.md.
"""

from __future__ import annotations

from typing import Any

from muster.cluster.errors import ClusterError, Unavailable
from muster.cluster.execute import in_order
from muster.cluster.interface import Cluster
from muster.cluster.observe.members import pods_of_group
from muster.cluster.observe.sweep import objects_of
from muster.cluster.permissions import Permission, Permissions, may
from muster.cluster.read import get, list_if_served
from muster.events.parse import Happened, OtherEvent, ResourceEvent, UnreadableEvent, owner_of
from muster.events.predicates import not_for_step
from muster.objects.meta import KubernetesObject, ObjectRef, View
from muster.objects.pods import Namespace, Pod
from muster.objects.resources import (
    CONFIGMAPS,
    EVENTS,
    JOBS,
    JOBSETS,
    NAMESPACES,
    NODES,
    POD_GROUPS,
    PODS,
    TRAINJOBS,
    WORKLOADS,
    Resource,
    register_resource,
)
from muster.objects.scheduling import PodGroup, Workload
from muster.policy.model import Action, Decision, NoOp, PatchType, Plan, Reply, Verb
from muster.policy.reasons import Reason
from muster.policy.sources.schema import InvalidPolicyError, PodGroupPolicy
from muster.policy.sources.schema import parse as parse_policy
from muster.runtime.step import Step

__all__ = [
    "CONFIGMAPS",
    "EVENTS",
    "JOBS",
    "JOBSETS",
    "NAMESPACES",
    "NODES",
    "PODS",
    "POD_GROUPS",
    "TRAINJOBS",
    "WORKLOADS",
    "Action",
    "Cluster",
    "ClusterError",
    "Decision",
    "Happened",
    "InvalidPolicyError",
    "KubernetesObject",
    "Namespace",
    "NoOp",
    "ObjectRef",
    "OtherEvent",
    "PatchType",
    "Permission",
    "Permissions",
    "Plan",
    "Pod",
    "PodGroup",
    "PodGroupPolicy",
    "Reason",
    "Reply",
    "Resource",
    "ResourceEvent",
    "Step",
    "Unavailable",
    "UnreadableEvent",
    "Verb",
    "View",
    "Workload",
    "get",
    "in_order",
    "list_if_served",
    "may",
    "not_for_step",
    "objects_of",
    "owner_of",
    "parse_policy",
    "pods_of_group",
    "register_resource",
    "serve_step",
]


def serve_step(step: Step) -> Any:
    """Return the instance of a step that func's Python middleware serves, configured by the environment.

    It needs the extra `knative`. Settings: `muster.runtime.config`.

    Raises:
        BadSettingError: the environment names no cluster, or has a value that cannot be used.
    """
    from muster.runtime import knative  # noqa: PLC0415 - planning and tests need no server

    return knative.serve_step(step)
