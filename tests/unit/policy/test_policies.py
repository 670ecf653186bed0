"""A policy is read strictly: whatever a tenant writes is a policy, or invalid with the path of its field."""

from __future__ import annotations

from typing import Any

import pytest

from muster.policy import limits
from muster.policy.sources import schema
from muster.policy.sources.schema import InvalidPolicyError
from muster.policy.sources.source import DEFAULT, PolicySource, PolicySourceKind, resolve_policy

GROUP = "workload: {groups: [{name: a}, {name: b, groups: [{name: c, %s}]}]}"
PATH = "workload.groups[1].groups[0]"
ABOVE = "workload: {groups: [{name: a, groups: [{name: b}], %s}]}"
GANG = "schedulingPolicy: {gang: {%s}}"
TOPOLOGY = GROUP % "schedulingConstraints: {topology: [%s]}"
CLAIM = "{name: x, resourceClaimName: y}"
CLAIMS = GROUP % "resourceClaims: [%s]"
SCHEDULERS = ["workload", "kaiScheduler", "coscheduling", "volcano"]
NINE_GROUPS = ", ".join(f"{{name: g{number}}}" for number in range(9))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("workload: {groups: [{name: a, resourceClaims: {}}]}", "workload.groups[0].resourceClaims"),
        (GROUP % "schedulingPolicy: {gang: {}, basic: {}}", f"{PATH}.schedulingPolicy"),
        (GROUP % GANG % "minCount: 0", f"{PATH}.schedulingPolicy.gang.minCount"),
        (GROUP % GANG % "minCount: '3'", f"{PATH}.schedulingPolicy.gang.minCount"),
        (GROUP % GANG % "minGroupCount: 2", f"{PATH}.schedulingPolicy.gang.minGroupCount"),
        (ABOVE % GANG % "minCount: 2", "workload.groups[0].schedulingPolicy.gang.minCount"),
        (ABOVE % f"resourceClaims: [{CLAIM}]", "workload.groups[0].resourceClaims"),
        (GROUP % "minCount: 3", f"{PATH}.minCount"),
        (GROUP % "scheduling_policy: {basic: {}}", f"{PATH}.scheduling_policy"),
        (GROUP % "size: 2, leader: true", f"{PATH}.leader"),
        (TOPOLOGY % "{key: a}, {key: b}", f"{PATH}.schedulingConstraints.topology"),
        (TOPOLOGY % "{key: a..b/c}", f"{PATH}.schedulingConstraints.topology[0].key"),
        (CLAIMS % f"{CLAIM}, {CLAIM}", f"{PATH}.resourceClaims"),
        (CLAIMS % "{name: a}", f"{PATH}.resourceClaims[0]"),
        ("workload: {groups: [{name: none}]}", "workload.groups[0].name"),
        ("workload: {groups: [{name: A}]}", "workload.groups[0].name"),
        (f"workload: {{groups: [{NINE_GROUPS}]}}", "workload.groups"),
        ("workload: {onTimeout: Basic}", "workload.onTimeout"),
        ("workload: {}\nkaiScheduler: {}", ""),
        ("{}", ""),
        ("kaiScheduler: {queue: a/b}", "kaiScheduler.queue"),
    ],
)
def test_a_fault_is_reported_with_its_path(text: str, path: str) -> None:
    """The path of the field as it is written in the policy."""
    with pytest.raises(InvalidPolicyError) as raised:
        schema.parse(text)
    assert raised.value.path == path


def test_every_fault_is_told_at_once_with_what_is_allowed() -> None:
    """Each with its path; an unknown field with the nearest name, and once with the fields of its place."""
    text = GROUP % f"{GANG % 'minCont: 3, zzz: 1'}, size: 0"
    with pytest.raises(InvalidPolicyError) as raised:
        schema.parse(text + "\nworklod: {}")
    gang = f"{PATH}.schedulingPolicy.gang"
    assert str(raised.value).split("; ") == [
        f"{PATH}.size: must be at least 1",
        f"{gang}.minCont: unknown field, did you mean minCount? (allowed: minCount, minGroupCount)",
        f"{gang}.zzz: unknown field",
        f"worklod: unknown field, did you mean workload? (allowed: {', '.join(SCHEDULERS)})",
    ]


@pytest.mark.parametrize(("faults", "length"), [(11, 1), (9, 63), (200, 63)])
def test_the_message_of_many_faults_fits_into_an_event(faults: int, length: int) -> None:
    """At most ten faults are told, as far as they fit; the others are counted."""
    text = ", ".join(f"{'x' * length}{number:03}: 1" for number in range(faults))
    with pytest.raises(InvalidPolicyError) as raised:
        schema.parse(GROUP % text)
    told, _, more = str(raised.value).rpartition("; and ")
    assert len(str(raised.value)) <= 900
    assert told.count(": unknown field") + int(more.removesuffix(" more")) == faults
    assert told.count(": unknown field") <= 10


@pytest.mark.parametrize(
    "absent",
    [
        "schedulingPolicy: {}, schedulingConstraints: {}, disruptionMode: {}",
        "schedulingPolicy: null, per: null, leader: null, replicatedJobs: null, groups: null",
    ],
)
def test_null_and_empty_fields_are_absent(absent: str) -> None:
    """As in Kubernetes, where a field may be absent; a misspelt one is a fault nevertheless."""
    assert schema.parse(GROUP % absent) == schema.parse(GROUP % "")
    assert schema.parse("{workload: {onTimeout: null, groups: null}, volcano: null}") == schema.parse(
        "workload: {}"
    )
    with pytest.raises(InvalidPolicyError, match="did you mean onFailure"):
        schema.parse("workload: {onFailur: null}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gang",
        "workload: {",
        "workload: {}\n---\nworkload: {}",
        "&a {workload: *a}",
        "workload: &a {}",
        pytest.param("[" * 5000, id="thousands of brackets"),
        "coscheduling: {a: !!set {b}}",
        "!!bool x",
        "coscheduling: {[]: 1}",
        pytest.param(f"coscheduling: {{a: 0x{'f' * 8000}}}", id="a number of 8,000 digits"),
        pytest.param(f"coscheduling: {{a: 1{':1' * 5000}.5}}", id="a number of base 60 beyond any float"),
        pytest.param("workload: {on\ud800: 1}", id="half of a surrogate pair"),
        pytest.param("workload: {on\0: 1}", id="a null character"),
    ],
)
def test_a_text_that_is_no_data_is_an_invalid_policy(text: str) -> None:
    """The message can be written into a condition."""
    policy = resolve_policy((PolicySource(PolicySourceKind.OWNER, "the owner", text),))
    assert policy.failure is not None
    assert policy.failure.message.encode().isascii() or "…" in policy.failure.message


def test_the_limit_counts_bytes() -> None:
    """Of a text, and of the field of a runtime, which is data already."""
    text = "workload: {}\n#"
    schema.parse(text + "x" * (limits.POLICY_BYTES - len(text)))
    for longer in ("x" * (limits.POLICY_BYTES - len(text) + 1), "ü" * (limits.POLICY_BYTES // 2)):
        with pytest.raises(InvalidPolicyError, match=str(limits.POLICY_BYTES)):
            schema.parse(text + longer)
    with pytest.raises(InvalidPolicyError, match=str(limits.POLICY_BYTES)):
        schema.check({"workload": {"groups": [{"name": "a", "replicatedJobs": ["node"] * 5000}]}})


@pytest.mark.parametrize(
    ("content", "held"),
    [
        ("workload: {onFailure: Hold, bogus: 1}", True),
        ({"workload": {"onFailure": "Hold"}}, True),
        ("workload: {onFailure: Basic}", False),
        ("workload: [", False),
        ("[]", False),
    ],
)
def test_an_invalid_policy_still_decides_whether_pods_are_held(content: Any, held: bool) -> None:
    """Who wrote Hold does not want pods to run without their gang because of a slip elsewhere."""
    assert schema.asks_to_hold(content) is held


FLAG = "workload: {onScale: Flag}"


def a_source(kind: PolicySourceKind, content: str) -> PolicySource:
    """A policy source named by its kind."""
    return PolicySource(kind, f"the {kind}", content)


def test_the_first_source_decides() -> None:
    """Lower policy sources are not read, also if the first is invalid."""
    below = a_source(PolicySourceKind.NAMESPACE, FLAG)
    policy = resolve_policy((a_source(PolicySourceKind.OWNER, "workload: {}"), below))
    assert policy.where == "the owner"
    invalid = resolve_policy((a_source(PolicySourceKind.OWNER, "workload: {onScal: Flag}"), below))
    assert invalid.failure is not None
    assert "the owner: workload.onScal: " in invalid.failure.message
    assert resolve_policy(()) == DEFAULT


@pytest.mark.parametrize(
    ("text", "its_own", "elsewhere", "command"),
    [
        ("volcano: {a: 60}", PolicySourceKind.RUNTIME_SPEC, PolicySourceKind.RUNTIME, "kubectl patch"),
        ("kaiScheduler: {queue: q}", PolicySourceKind.RUNTIME, PolicySourceKind.OWNER, "kubectl annotate"),
    ],
)
def test_policies_for_other_schedulers_have_one_place(
    text: str, its_own: PolicySourceKind, elsewhere: PolicySourceKind, command: str
) -> None:
    """Volcano is the Trainer's own field, mark_runtime hands pods to KAI; elsewhere a command is given."""
    policy = resolve_policy((a_source(its_own, text),))
    assert (policy.failure, policy.other) == (None, text.partition(":")[0])
    invalid = resolve_policy((a_source(elsewhere, text),))
    assert invalid.failure is not None
    assert command in invalid.failure.message
