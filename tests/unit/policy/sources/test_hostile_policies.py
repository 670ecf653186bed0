"""Whatever a tenant writes as a policy ends as a policy or as InvalidPolicy, after bounded work."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.observe.snapshot import Snapshot
from muster.objects import yaml_files
from muster.policy import limits
from muster.policy.model import Plan
from muster.policy.reasons import Reason
from muster.policy.sources import schema, strict_yaml
from muster.policy.sources.schema import InvalidPolicyError
from muster.policy.sources.source import (
    ANNOTATION,
    EffectivePolicy,
    InvalidPolicy,
    PolicySource,
    PolicySourceKind,
    policy_annotations,
    resolve_policy,
)
from muster.runtime.steps import step_named
from tests.support import cpu
from tests.support.builders import (
    NOW,
    Object,
    a_job,
    a_jobset,
    a_namespace,
    a_replicated_job,
    annotated,
    observed,
    pods_of,
    ref,
)
from tests.support.generated_policies import NOT_SLOW
from tests.support.planning import plan_pods, plan_workload
from tests.support.runtimes import a_runtime

PAGE = (Path(__file__).parents[4] / "docs" / "policy.md").read_text()
GOOD = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

REFUSED = [
    pytest.param("!!bool x", id="a tag that its value does not fit: bool"),
    pytest.param('!!int ""', id="a tag that its value does not fit: int"),
    pytest.param('!!float ""', id="a tag that its value does not fit: float"),
    pytest.param('!!timestamp "x"', id="a tag that its value does not fit: timestamp"),
    pytest.param("!!map [a]", id="a tag that its value does not fit: map"),
    pytest.param("%TAG ! tag:yaml.org,2002:\n---\n!bool x", id="a %TAG directive"),
    pytest.param("%YAML 1.1\n---\nworkload: {}", id="a %YAML directive"),
    pytest.param("workload: !!map {}", id="a tag that its value fits"),
    pytest.param("workload: &a {}", id="an anchor that nothing refers to"),
    pytest.param("workload: {}\n---\nworkload: {}", id="two documents"),
    pytest.param("{[]: 1}", id="a list as a key"),
    pytest.param("workload: {groups: [{name: a, size: 0x%s}]}" % ("f" * 8000), id="a number of 8,000 digits"),
    pytest.param("workload: {groups: [" + ("{name: a, groups: [" * 600), id="600 levels of groups"),
    pytest.param("workload: {" + "k: 1, " * 40_000 + "}", id="a text of 240 kB"),
]


@pytest.mark.parametrize("text", REFUSED)
def test_hostile_text_is_refused_while_it_is_parsed(text: str) -> None:
    """Each message has the fault; those of a limit have its name and value."""
    with pytest.raises(InvalidPolicyError) as raised:
        schema.parse(text)
    assert raised.value.path == ""


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('workload: {groups: [{name: "\\ud800"}]}', id="half of a surrogate pair, escaped"),
        pytest.param("workload: {on\ud800: 1}", id="half of a surrogate pair"),
        pytest.param("workload: {on\0: 1}", id="a null character"),
        pytest.param("coscheduling: {a: 0b_}", id="a number without digits"),
    ],
)
def test_characters_that_no_message_could_carry_are_invalid(text: str) -> None:
    """The message of the library is in its own words; it can be written into a condition."""
    with pytest.raises(InvalidPolicyError) as raised:
        schema.parse(text)
    assert str(raised.value).encode()


@pytest.mark.parametrize("text", GOOD)
def test_a_good_policy_is_the_same_data_as_for_any_yaml_parser(text: str) -> None:
    """The strict parser refuses more, but reads nothing differently."""
    assert strict_yaml.load(text) == yaml_files.load(text)


@pytest.mark.parametrize(
    "text", ["[~, null, yes, 'yes', 12, 0x1f, 1.5, 1e3, 2026-02-31, =, <<]", "{a: {b: [], c: ''}}", ""]
)
def test_scalars_are_the_same_data_as_for_any_yaml_parser(text: str) -> None:
    """Quoted words stay strings, dates too, as in JSON."""
    plain = text.replace(", =, <<", "")
    assert strict_yaml.load(plain) == yaml_files.load(plain)
    if plain != text:
        assert strict_yaml.load(text)[-2:] == ["=", "<<"]


def test_a_policy_of_the_size_limit_is_read_and_of_one_byte_more_is_not() -> None:
    """The limit counts bytes of UTF-8, not characters."""
    text = "workload: {}\n#"
    schema.parse(text + "x" * (limits.POLICY_BYTES - len(text)))
    for longer in ("x" * (limits.POLICY_BYTES - len(text) + 1), "ü" * (limits.POLICY_BYTES // 2)):
        with pytest.raises(InvalidPolicyError, match="POLICY_BYTES"):
            schema.parse(text + longer)


def test_a_policy_of_the_size_limit_can_be_stored_on_the_workload() -> None:
    """Stored as JSON it is longer, and still read."""
    names = ",".join(["a"] * 8000)
    text = f"workload: {{groups: [{{name: a, replicatedJobs: [{names}]}}]}}"
    policy = resolve_policy((PolicySource(PolicySourceKind.OWNER, "source", text),))
    assert isinstance(policy, EffectivePolicy)
    stored = policy_annotations(policy)[ANNOTATION]
    assert len(stored) > limits.POLICY_BYTES
    again = resolve_policy((PolicySource(PolicySourceKind.STORED, "source", stored),))
    assert isinstance(again, EffectivePolicy)
    assert again.workload == policy.workload


def test_the_field_of_a_runtime_has_the_limits_of_a_text() -> None:
    """It is data already, as an API server or a file of the operator gave it; aliases count in full."""
    with pytest.raises(InvalidPolicyError, match="POLICY_BYTES"):
        schema.check({"workload": {"groups": [{"name": "a", "replicatedJobs": ["node"] * 5000}]}})
    shared: Any = {"name": "a"}
    for _ in range(4):
        shared = {"name": "a", "groups": [shared] * 8}
    with pytest.raises(InvalidPolicyError, match="POLICY_BYTES"):
        schema.check({"workload": {"groups": [shared]}})
    deep: Any = {"name": "a"}
    for _ in range(2000):
        deep = {"groups": [deep]}
    with pytest.raises(InvalidPolicyError, match="POLICY_DEPTH"):
        schema.check({"workload": deep})


@pytest.mark.thorough
def test_a_duplicate_key_is_searched_in_linear_time() -> None:
    """50,000 keys took 48 s in quadratic time."""
    text = "".join(f"key-{number}: 1\n" for number in range(50_000))
    with cpu.at_most(15):
        data = strict_yaml.load(text, strict_yaml.TextLimits(len(text), "", 1, ""))
        assert len(data) == 50_000


ANY_TEXT = st.text(max_size=200)
YAML_TEXT = st.lists(
    st.sampled_from([*"{}[]:,&*!|>%@`\"'#-?\n \t", "a", "workload", "groups", "name", "onFailure", "Hold"])
    | st.sampled_from(
        ["!!bool", "!!float", "*a", "&a", "<<", "---", "...", "\\x1b", "9" * 5000, "0x", "1:2", "~"]
    ),
    max_size=60,
).map("".join)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A policy of the page with some of its text replaced, repeated or left out."""
    text: str = draw(st.sampled_from(GOOD))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 30)))
        text = text[:begin] + draw(ANY_TEXT | YAML_TEXT | st.just(text[begin:end] * 2)) + text[end:]
    return text


@pytest.mark.thorough
@NOT_SLOW
@given(st.one_of(st.text(), YAML_TEXT, mutated()), st.sampled_from(sorted(PolicySourceKind)))
def test_any_text_is_a_policy_or_invalid(text: str, kind: PolicySourceKind) -> None:
    """Never an exception; the message is short, printable and can be written into a condition."""
    policy = resolve_policy((PolicySource(kind, "source", text),))
    if isinstance(policy, InvalidPolicy):
        assert policy.failure.reason == Reason.INVALID_POLICY
        message = policy.failure.message
        assert message.encode()
        assert message.isprintable()


@pytest.mark.thorough
@NOT_SLOW
@given(st.one_of(st.text(), YAML_TEXT, mutated()))
def test_any_text_lets_pods_run_or_holds_them(text: str) -> None:
    """The pods of an owner get groups, fallback groups, or keep their gate because the policy says Hold."""
    job = a_job()
    source = PolicySource(PolicySourceKind.OWNER, "source", text)
    world = observed(job, pods=pods_of(job), sources=(source,))
    decision = plan_workload(world, NOW)
    if isinstance(resolve_policy((source,)), InvalidPolicy):
        assert isinstance(decision, Plan)
        kinds = [action.target.kind for action in decision.actions]
        assert ("PodGroup" in kinds) is not schema.asks_to_hold(text)
        assert "Event" in kinds
    plan_pods(world, NOW)


def _world(text: str) -> tuple[Object, Snapshot]:
    jobset = a_jobset(
        *[a_replicated_job(f"job-{number}") for number in range(64)],
        modifiers=(annotated({ANNOTATION: text}),),
    )
    return jobset, Snapshot([a_namespace(), jobset])


SIXTY_FOUR_GROUPS: Object = {
    "workload": {
        "groups": [
            {"name": f"c-{top}", "groups": [{"name": f"job-{8 * top + leaf}"} for leaf in range(8)]}
            for top in range(8)
        ]
    }
}
_NODES = ", ".join(["job-0"] * 2000)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            f"workload: {{groups: [{{name: job-0, replicatedJobs: [{_NODES}]}}]}}", id="2,000 names"
        ),
        pytest.param("".join(f"k{number}: 1\n" for number in range(1800)), id="1,800 unknown fields"),
        pytest.param(json.dumps(SIXTY_FOUR_GROUPS), id="64 groups"),
    ],
)
def test_a_step_plans_the_largest_policies_in_bounded_time(text: str) -> None:
    """A second is twenty times what it takes on an idle machine."""
    assert len(text) <= limits.POLICY_BYTES
    jobset, cluster = _world(text)
    step = step_named("create_workload")
    with cpu.at_most(3):
        step.plan(step.observe(cluster, ref(jobset)), NOW)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were parsed, in order; none was parsed before."""
    texts: list[str] = []
    load = strict_yaml.load

    def noted(text: str, *bounds: strict_yaml.TextLimits) -> Any:
        texts.append(text)
        return load(text, *bounds)

    monkeypatch.setattr(strict_yaml, "load", noted)
    schema.forget_parsed_policies()
    return texts


@pytest.mark.parametrize("text", ["workload: {onScale: Flag}", "workload: {onScal: Flag}"])
@pytest.mark.parametrize(
    ("name", "times"), [("create_workload", 1), ("emit_conditions", 1), ("create_pod_groups", 0)]
)
def test_a_step_parses_a_policy_once(name: str, times: int, text: str, parsed: list[str]) -> None:
    """For the groups, the failure and whether pods are held; not at all before there is a Workload."""
    jobset, cluster = _world(text)
    step = step_named(name)
    step.plan(step.observe(cluster, ref(jobset)), NOW)
    assert parsed == [text] * times


def test_mark_runtime_parses_a_policy_once(parsed: list[str]) -> None:
    """Its predicate reads the policy in the event, its plan that of the live runtime."""
    runtime = a_runtime("workload: {groups: [{name: x, replicatedJobs: [none]}]}")
    step = step_named("mark_runtime")
    step.plan(step.observe(Snapshot([runtime]), ref(runtime)), NOW)
    assert len(parsed) == 1
