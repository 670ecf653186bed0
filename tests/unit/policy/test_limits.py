"""An owner beyond a limit gets no groups, and the refusal has the field, its number and the limit."""

from __future__ import annotations

import pytest

from muster.policy import group_labels, limits
from muster.policy.reasons import Reason
from muster.policy.resolve import ResolvedOwner
from muster.policy.sources.source import PolicySource, PolicySourceKind
from tests.support.builders import Object, a_jobset, a_replicated_job, observed, template_labelled
from tests.support.planning import resolve

PER_JOB = template_labelled({group_labels.GROUP_PER: "job"})
NESTED = "workload: {groups: [{name: a, groups: [{name: b, per: Job, groups: [{name: main}]}]}]}"
LABELS = "spec.replicatedJobs[0].template.spec.template.metadata.labels"


def failure_of(owner: Object, policy: str = "workload: {}") -> str:
    """Why the owner gets no groups under a policy of its namespace; "" if it gets them."""
    source = PolicySource(PolicySourceKind.NAMESPACE, "ConfigMap team-a/muster-policy", policy)
    resolved = resolve(observed(owner, sources=(source,)))
    assert isinstance(resolved, ResolvedOwner)
    if resolved.failure is None:
        return ""
    assert resolved.failure.reason == Reason.TOO_MANY_GROUPS
    return resolved.failure.message


def of_replicated_jobs(count: int) -> Object:
    """A JobSet of so many replicatedJobs, all in one group."""
    return a_jobset(*(a_replicated_job(f"stage-{index}", label="all") for index in range(count)))


def of_jobs(count: int) -> Object:
    """A JobSet of so many Jobs, each with a PodGroup of its own."""
    return a_jobset(a_replicated_job("node", PER_JOB, replicas=count, label="main"))


@pytest.mark.parametrize(
    ("most", "beyond", "policy", "message"),
    [
        pytest.param(
            of_replicated_jobs(limits.REPLICATED_JOBS),
            of_replicated_jobs(limits.REPLICATED_JOBS + 1),
            "workload: {}",
            "spec.replicatedJobs[128].template.spec.template: is one of 129 pod templates, "
            "but one owner can have 128",
            id="pod templates",
        ),
        pytest.param(
            of_jobs(limits.POD_GROUPS),
            of_jobs(2**31 - 1),
            "workload: {}",
            f"{LABELS}[muster.dev/group-per]: makes 2147483647 PodGroups, but one owner can have 512",
            id="PodGroups",
        ),
        pytest.param(
            of_jobs(limits.COMPOSITE_POD_GROUPS - 1),
            of_jobs(limits.COMPOSITE_POD_GROUPS),
            NESTED,
            "workload.groups: makes 257 CompositePodGroups, but one owner can have 256",
            id="CompositePodGroups",
        ),
    ],
)
def test_the_most_that_one_owner_can_have(most: Object, beyond: Object, policy: str, message: str) -> None:
    """One more is refused."""
    assert failure_of(most, policy) == ""
    assert failure_of(beyond, policy).endswith(message)
