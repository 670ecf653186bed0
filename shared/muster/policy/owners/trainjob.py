"""Kubeflow TrainJobs (trainer.kubeflow.org/v1alpha1, Trainer v2.3.0): each runs as a JobSet of its name."""

from __future__ import annotations

from pydantic import Field

from muster.objects.meta import ObjectRef, View
from muster.objects.resources import CLUSTER_TRAINING_RUNTIMES, JOBSETS, TRAINING_RUNTIMES, TRAINJOBS
from muster.policy.owners.kind import OwnerKind, OwnerObject, OwnerSpec

CONTROLLER = "trainer.kubeflow.org/trainjob-controller"


class RuntimeRef(View):
    """The runtime of a TrainJob."""

    name: str = ""
    kind: str = CLUSTER_TRAINING_RUNTIMES.kind


class TrainJobSpec(OwnerSpec):
    """The spec of a TrainJob; `scheduling` comes with KEP-3015."""

    runtime_ref: RuntimeRef = Field(default_factory=RuntimeRef)
    managed_by: str = CONTROLLER


class TrainJob(OwnerObject):
    """A TrainJob."""

    spec: TrainJobSpec = Field(default_factory=TrainJobSpec)


def _runtime(trainjob: TrainJob) -> ObjectRef:
    ref = trainjob.spec.runtime_ref
    if ref.kind == TRAINING_RUNTIMES.kind:
        return ObjectRef(
            TRAINING_RUNTIMES.api_version, TRAINING_RUNTIMES.kind, trainjob.metadata.namespace, ref.name
        )
    return ObjectRef(CLUSTER_TRAINING_RUNTIMES.api_version, CLUSTER_TRAINING_RUNTIMES.kind, "", ref.name)


TRAINJOB = OwnerKind(
    resource=TRAINJOBS,
    view=TrainJob,
    controller=CONTROLLER,
    runs_as=JOBSETS,
    runtime=_runtime,
    shows_last_condition=True,
)
