"""A policy is parsed strictly, and each error has the path of its field."""

from __future__ import annotations

import pytest

from muster.policy.sources import schema
from muster.policy.sources.schema import (
    DisruptionMode,
    Empty,
    GangPolicy,
    GroupPolicy,
    InvalidPolicyError,
    SchedulingPolicyChoice,
)
from tests.support.messages import mentions

FULL = """
workload:
  groups:
  - name: root
    schedulingPolicy: {gang: {minGroupCount: 2}}
    schedulingConstraints: {topology: [{key: topology.kubernetes.io/zone}]}
    disruptionMode: {all: {}}
    preemptionPolicy: Never
    groups:
    - name: trainer
      replicatedJobs: [node]
      size: 4
      schedulingPolicy: {gang: {minCount: 4}}
      schedulingConstraints: {topology: [{key: example.com/rack}]}
      disruptionMode: {single: {}}
      resourceClaims:
      - {name: gpu, resourceClaimName: shared-gpu}
      - {name: nic, resourceClaimTemplateName: shared.nic}
    - name: launcher
      schedulingPolicy: {basic: {}}
  onScale: Flag
  onFailure: Hold
"""


def test_every_field_of_the_design_is_read() -> None:
    """What is written is what is read, nothing is lost and nothing is made up."""
    policy = schema.parse(FULL).workload
    assert policy is not None
    (root,) = policy.groups
    trainer, launcher = root.groups
    assert (policy.on_scale, policy.on_failure) == ("Flag", "Hold")
    assert _pod_sets_of(root).min_group_count == 2
    assert (trainer.replicated_jobs, trainer.size, trainer.per, trainer.leader) == (["node"], 4, None, False)
    assert _pod_sets_of(trainer).min_count == 4
    assert [claim.name for claim in trainer.resource_claims] == ["gpu", "nic"]
    assert launcher.scheduling_policy == SchedulingPolicyChoice(basic=Empty())
    assert root.disruption_mode == DisruptionMode(all=Empty())
    assert root.preemption_policy == "Never"


def _pod_sets_of(group: GroupPolicy) -> GangPolicy:
    assert group.scheduling_policy is not None
    assert group.scheduling_policy.gang is not None
    return group.scheduling_policy.gang


def test_an_empty_workload_is_a_complete_policy() -> None:
    """`workload: {}` asks for the defaults; JSON is YAML."""
    assert schema.parse('{"workload": {}}').workload == schema.WorkloadPolicy()


IN_GROUP_1_0 = "workload: {groups: [{name: a}, {name: b, groups: [{name: c, %s}]}]}"
PATH_1_0 = "workload.groups[1].groups[0]"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        pytest.param(
            IN_GROUP_1_0 % "schedulingPolicy: {}",
            f"{PATH_1_0}.schedulingPolicy",
            id="a scheduling policy of neither kind",
        ),
        pytest.param(
            IN_GROUP_1_0 % "schedulingPolicy: {gang: {}, basic: {}}",
            f"{PATH_1_0}.schedulingPolicy",
            id="a scheduling policy of both kinds",
        ),
        pytest.param(
            IN_GROUP_1_0 % "schedulingPolicy: {gang: {minCount: 0}}",
            f"{PATH_1_0}.schedulingPolicy.gang.minCount",
            id="a minCount of 0, which the API refuses",
        ),
        pytest.param(
            IN_GROUP_1_0 % "schedulingPolicy: {gang: {minCount: '3'}}",
            f"{PATH_1_0}.schedulingPolicy.gang.minCount",
            id="a count in quotes",
        ),
        pytest.param(
            IN_GROUP_1_0 % "schedulingPolicy: {gang: {minGroupCount: 2}}",
            f"{PATH_1_0}.schedulingPolicy.gang.minGroupCount",
            id="minGroupCount on a group of pods",
        ),
        pytest.param(
            "workload: {groups: [{name: a, schedulingPolicy: {gang: {minCount: 2}}, groups: [{name: b}]}]}",
            "workload.groups[0].schedulingPolicy.gang.minCount",
            id="minCount on a group of groups",
        ),
        pytest.param(
            "workload: {groups: [{name: a, groups: [{name: b}], "
            "resourceClaims: [{name: x, resourceClaimName: y}]}]}",
            "workload.groups[0].resourceClaims",
            id="resource claims on a group of groups, which have none in the API",
        ),
        pytest.param(IN_GROUP_1_0 % "minCount: 3", f"{PATH_1_0}.minCount", id="an unknown field"),
        pytest.param(
            IN_GROUP_1_0 % "scheduling_policy: {basic: {}}",
            f"{PATH_1_0}.scheduling_policy",
            id="a field as Python would spell it",
        ),
        pytest.param(
            IN_GROUP_1_0 % "size: 2, leader: true",
            f"{PATH_1_0}.leader",
            id="a leader in blocks",
        ),
        pytest.param(
            IN_GROUP_1_0 % "schedulingConstraints: {topology: [{key: a}, {key: b}]}",
            f"{PATH_1_0}.schedulingConstraints.topology",
            id="two topology keys",
        ),
        pytest.param(
            IN_GROUP_1_0 % f"schedulingConstraints: {{topology: [{{key: {'a' * 254}/c}}]}}",
            f"{PATH_1_0}.schedulingConstraints.topology[0].key",
            id="a topology key with a longer prefix than a DNS subdomain",
        ),
        pytest.param(
            IN_GROUP_1_0
            % "resourceClaims: [{name: x, resourceClaimName: y}, {name: x, resourceClaimName: z}]",
            f"{PATH_1_0}.resourceClaims",
            id="two resource claims of a name",
        ),
        pytest.param(
            IN_GROUP_1_0 % "schedulingConstraints: {topology: [{key: a..b/c}]}",
            f"{PATH_1_0}.schedulingConstraints.topology[0].key",
            id="a topology key that is no label key",
        ),
        pytest.param(
            IN_GROUP_1_0 % "resourceClaims: [{name: a}]",
            f"{PATH_1_0}.resourceClaims[0]",
            id="a claim without a source",
        ),
        pytest.param(
            "workload: {groups: [{name: none}]}",
            "workload.groups[0].name",
            id="a group called none",
        ),
        pytest.param(
            "workload: {groups: [{name: A}]}",
            "workload.groups[0].name",
            id="a name that is no DNS label",
        ),
        pytest.param(
            f"workload: {{groups: [{', '.join(f'{{name: g{number}}}' for number in range(9))}]}}",
            "workload.groups",
            id="nine groups in one list",
        ),
        pytest.param(
            "workload: {}\nkaiScheduler: {}",
            "kaiScheduler",
            id="two sources",
        ),
        pytest.param(
            "{}",
            "workload",
            id="no source",
        ),
        pytest.param(
            "kaiScheduler: {queue: a/b}",
            "kaiScheduler.queue",
            id="a queue that is no label value",
        ),
        pytest.param("gang", "", id="no mapping"),
        pytest.param("", "", id="nothing at all"),
    ],
)
def test_a_fault_is_reported_with_its_path(text: str, path: str) -> None:
    """One message, with the path of the field as it is written in the policy."""
    with pytest.raises(InvalidPolicyError) as raised:
        schema.parse(text)
    assert raised.value.path == path
    assert not path or mentions(str(raised.value), path)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("workload: {}\nworkload: {}", id="a key given twice"),
        pytest.param("&a {workload: *a}", id="an alias to itself"),
        pytest.param("[" * 5000, id="thousands of brackets"),
    ],
)
def test_text_that_cannot_be_read_is_an_invalid_policy(text: str) -> None:
    """Whatever a person writes into an annotation, a function finds the policy at fault, never itself."""
    with pytest.raises(InvalidPolicyError) as raised:
        schema.parse(text)
    assert raised.value.path == ""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("workload: {", id="a brace that is never closed"),
        pytest.param("workload: {onScale: ]", id="a bracket that was never opened"),
    ],
)
def test_text_that_a_library_refuses_is_an_invalid_policy(text: str) -> None:
    """The rest of the message is in the words of PyYAML or Python, which change with their versions."""
    with pytest.raises(InvalidPolicyError, match="YAML") as raised:
        schema.parse(text)
    assert raised.value.path == ""


@pytest.mark.parametrize(
    ("content", "held"),
    [
        pytest.param("workload: {onFailure: Hold, bogus: 1}", True, id="a policy that is invalid elsewhere"),
        pytest.param({"workload": {"onFailure": "Hold"}}, True, id="a field of a runtime"),
        pytest.param("workload: {onFailure: Basic}", False, id="a policy that says Basic"),
        pytest.param("workload: [", False, id="no YAML"),
        pytest.param("[]", False, id="no mapping"),
    ],
)
def test_an_invalid_policy_still_decides_whether_pods_are_held(content: str, held: bool) -> None:
    """Who wrote Hold does not want pods to run without their gang because of a slip elsewhere."""
    assert schema.asks_to_hold(content) is held
