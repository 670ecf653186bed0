"""Least privilege, proven: over all stories every verb that is granted is used, and none is used that is not.

It compares only at the end of a whole run, in which every story was told and passed.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.e2e.conftest import Stages
from tests.e2e.support.whole_run import WholeRun

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

OF_A_SOURCE = "Knative's controller keeps a source from starting whose account lacks get, list or watch"
"""`runAccessCheck` in pkg/reconciler/apiserversource/apiserversource.go, knative.dev/eventing v0.47.0."""

GRANTED_AND_NEVER_USED: Mapping[str, str] = {
    "muster-source: get compositepodgroups.scheduling.k8s.io": OF_A_SOURCE,
    "muster-source: get clustertrainingruntimes.trainer.kubeflow.org": OF_A_SOURCE,
    "muster-source: get jobs.batch": OF_A_SOURCE,
    "muster-source: get jobsets.jobset.x-k8s.io": OF_A_SOURCE,
    "muster-source: get podgroups.scheduling.k8s.io": OF_A_SOURCE,
    "muster-source: get pods": OF_A_SOURCE,
    "muster-source: get trainingruntimes.trainer.kubeflow.org": OF_A_SOURCE,
    "muster-source: get trainjobs.trainer.kubeflow.org": OF_A_SOURCE,
    "muster-source: get workloads.scheduling.k8s.io": OF_A_SOURCE,
}
"""Every exception, and why."""


def test_what_is_granted_is_what_was_used(stages: Stages, whole_run: WholeRun) -> None:
    """Of each account, on every cluster of the run: verbs, resources, and whether in all namespaces."""
    gaps = whole_run.gaps()
    if gaps:
        pytest.skip(f"what is granted is compared with what was used in a whole run only; {gaps}")
    stages.close()
    rights = stages.rights
    assert rights.refused == set(), "asked for and refused"
    assert rights.borrowed == set(), "allowed by something else than Muster's own roles"
    assert {str(right) for right in rights.unused()} == set(GRANTED_AND_NEVER_USED)
