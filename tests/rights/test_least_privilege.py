"""Least privilege, proven: over all stories every verb that is granted is used, and none is used that is not.

It looks back at the latest run of tests/e2e, which must have been a whole one.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.e2e.support.seen import recall

pytestmark = pytest.mark.real

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


def test_every_granted_permission_is_used_and_no_other() -> None:
    """Of each account, on every cluster of the run: verbs, resources, and whether in all namespaces."""
    seen = recall()
    assert seen.run.gaps() == "", "only a whole run of tests/e2e can be compared: make e2e"
    assert seen.rights.refused == set(), "asked for and refused"
    assert seen.rights.denied == set(), "not allowed by the policies in eventing/security/accounts"
    assert seen.rights.borrowed == set(), "allowed by something else than Muster's own roles"
    assert {str(right) for right in seen.rights.unused()} == set(GRANTED_AND_NEVER_USED)
