"""The controllers of pods of which Muster reads how many pods they have."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from muster.objects.meta import KubernetesObject, View
from muster.objects.resources import DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS

READABLE = {(one.group, one.kind): one for one in (STATEFUL_SETS, REPLICA_SETS, DEPLOYMENTS)}
"""By API group and kind: those of Kubernetes itself, so that no rights on foreign kinds are needed."""


class PodControllerSpec(View):
    """The fields of the specs of StatefulSet, ReplicaSet and Deployment that matter for a gang."""

    replicas: int = 1
    selector: dict[str, Any] = Field(default_factory=dict)
    pod_management_policy: str = "Parallel"
    """OrderedReady, the default of a StatefulSet: each pod is made when the one before is ready."""


class PodController(KubernetesObject):
    """A StatefulSet, ReplicaSet or Deployment."""

    spec: PodControllerSpec = Field(default_factory=PodControllerSpec)
