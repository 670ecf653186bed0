"""MutatingAdmissionPolicies of any kind: selected, evaluated, merged, and what happens where they fail."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from muster.objects import yaml_files
from tests.cluster.api import ApiResponse, KubernetesApi
from tests.contract.bodies import Object, core, pod
from tests.support.births import metadata_of_pods

STAMP_PODS = Path(__file__).parents[4] / "eventing/admission/stamp-pods.yaml"
ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
RULES: dict[str, Object] = {
    "Pod": {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
    "Job": {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]},
}
MEMBER = metadata_of_pods("j", "12345678-1111-1111-1111-111111111111", **{"muster.dev/group": "trainer"})


def _install(api: KubernetesApi, policy: Object, binding: Object | None = None) -> None:
    name = policy["metadata"]["name"]
    bound = binding or {"metadata": {"name": name}, "spec": {"policyName": name}}
    api.must("POST", ADMISSION + "mutatingadmissionpolicies", policy)
    api.must("POST", ADMISSION + "mutatingadmissionpolicybindings", bound)


def _policy(*expressions: str, name: str = "p", kind: str = "Pod", **spec: Any) -> Object:
    mutations = [
        {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
        for expression in expressions
    ]
    given: Object = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [RULES[kind]]},
        "mutations": mutations,
    }
    return {"metadata": {"name": name}, "spec": given | spec}


def _labelling(expression: str, **spec: Any) -> Object:
    """A policy that writes the value of an expression to the label `is` of each pod."""
    return _policy(
        f"Object{{metadata: Object.metadata{{labels: {{'is': {expression}}}}}}}",
        **spec,
    )


def _born(api: KubernetesApi, **metadata: Any) -> ApiResponse:
    return api.request("POST", core("default", "pods"), pod("p", metadata), query={"dryRun": "All"})


def _label(api: KubernetesApi, **metadata: Any) -> str | None:
    answer = _born(api, **metadata)
    assert answer.ok, answer.message
    label: str | None = (answer.body["metadata"].get("labels") or {}).get("is")
    return label


def test_an_edited_policy_changes_the_result(api: KubernetesApi) -> None:
    """The server runs the YAML: with another gate and separator in it, pods get another gate and name."""
    text = STAMP_PODS.read_text().replace("'muster.dev/pod-group'", "'example.com/wait'")
    policy, binding = yaml_files.load_all(text.replace("variables.owner + '-'", "variables.owner + '.'"))
    _install(api, policy, binding)
    spec = api.must("POST", core("default", "pods"), pod("p", MEMBER))["spec"]
    assert spec["schedulingGates"] == [{"name": "example.com/wait"}]
    assert spec["schedulingGroup"] == {"podGroupName": "j.trainer-12345678"}


def test_a_policy_is_evaluated_again_after_an_update(api: KubernetesApi) -> None:
    """A changed policy counts for the next object."""
    _install(api, _labelling("'old'"))
    assert _label(api) == "old"
    place = ADMISSION + "mutatingadmissionpolicies/p"
    stored = api.must("GET", place)
    stored["spec"]["mutations"] = _labelling("'new'")["spec"]["mutations"]
    api.must("PUT", place, stored)
    assert _label(api) == "new"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda rule: rule.update(operations=["UPDATE"]), id="another operation"),
        pytest.param(lambda rule: rule.update(apiGroups=["batch"]), id="another group"),
        pytest.param(lambda rule: rule.update(apiVersions=["v2"]), id="another version"),
        pytest.param(lambda rule: rule.update(resources=["jobs"]), id="another resource"),
        pytest.param(lambda rule: rule.update(resourceNames=["q"]), id="another name"),
    ],
)
def test_the_resource_rules_select(api: KubernetesApi, change: Callable[[Object], None]) -> None:
    """A policy whose rule is about something else has no effect."""
    rule = dict(RULES["Pod"])
    change(rule)
    _install(api, _labelling("'x'", matchConstraints={"resourceRules": [rule]}))
    assert _label(api) is None


def test_excluded_resources_are_left_alone(api: KubernetesApi) -> None:
    """What excludeResourceRules name wins over resourceRules."""
    everything = {field: ["*"] for field in ("apiGroups", "apiVersions", "operations", "resources")}
    excluded = RULES["Pod"] | {"resourceNames": ["p"]}
    constraints = {"resourceRules": [everything], "excludeResourceRules": [excluded]}
    _install(api, _labelling("'x'", matchConstraints=constraints))
    assert _label(api) is None
    other = api.must("POST", core("default", "pods"), pod("q"), query={"dryRun": "All"})
    assert other["metadata"]["labels"]["is"] == "x"


def test_an_expression_may_speak_of_the_namespace_and_the_request(api: KubernetesApi) -> None:
    """The names namespaceObject, request and oldObject are there; oldObject is null at a creation."""
    _install(
        api,
        _labelling("namespaceObject.metadata.name + request.operation + string(oldObject == null)"),
    )
    assert _label(api) == "defaultCREATEtrue"


def test_a_variable_is_evaluated_only_where_it_is_needed(api: KubernetesApi) -> None:
    """A variable that fails does no harm in a branch that is not taken."""
    variables = [
        {"name": "fails", "expression": "object.metadata.labels['missing']"},
        {"name": "short", "expression": "size(object.metadata.name) < 3"},
        {"name": "label", "expression": "variables.short ? 'short' : variables.fails"},
    ]
    _install(api, _labelling("variables.label", variables=variables))
    assert _label(api) == "short"


FAILING = "object.metadata.labels['missing']"


def test_a_failing_policy_refuses_the_object(api: KubernetesApi) -> None:
    """The failurePolicy Fail: 403 with reason Invalid and the policy's name."""
    _install(api, _labelling(FAILING))
    answer = _born(api)
    assert (answer.status, answer.reason) == (403, "Invalid")
    assert answer.message.startswith("policy 'p' with binding 'p' denied request: ")


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("object.metadata.labels['missing']", id="a key that is not there"),
        pytest.param("'x' +", id="no expression"),
        pytest.param("variables.unknown", id="an unknown variable"),
        pytest.param("quantity('1')", id="a function that is not there"),
    ],
)
def test_a_failing_policy_may_be_ignored(api: KubernetesApi, expression: str) -> None:
    """The failurePolicy Ignore: the object is born as if the policy were not there."""
    _install(api, _labelling(expression, failurePolicy="Ignore"))
    assert _label(api) is None


def test_a_condition_that_does_not_hold_wins_over_one_that_fails(api: KubernetesApi) -> None:
    """The policy does not act, and nothing is refused."""
    conditions = [{"name": "fails", "expression": f"{FAILING} == 'x'"}, {"name": "no", "expression": "false"}]
    _install(api, _labelling("'x'", matchConditions=conditions))
    assert _label(api) is None


def test_a_condition_that_fails_while_the_others_hold_fails_the_policy(api: KubernetesApi) -> None:
    """It is unknown whether the policy should have acted."""
    conditions = [{"name": "fails", "expression": f"{FAILING} == 'x'"}, {"name": "yes", "expression": "true"}]
    _install(api, _labelling("'x'", matchConditions=conditions))
    assert _born(api).status == 403


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("Object{spec: Object.spec{misspelled: 'x'}}", id="an unknown field"),
        pytest.param("Object{spec: Object.spec{priority: 'x'}}", id="a wrong type"),
        pytest.param("Object{spec: Object.metadata{priority: 1}}", id="an object of another field"),
        pytest.param("Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}", id="an atomic map"),
        pytest.param("{'spec': {}}", id="a plain map"),
        pytest.param("'text'", id="no object at all"),
    ],
)
def test_unknown_fields_of_the_kind_are_an_error(api: KubernetesApi, expression: str) -> None:
    """An apply configuration is held to the schema of the kind."""
    _install(api, _policy(expression))
    answer = _born(api)
    assert (answer.status, answer.reason) == (403, "Invalid")


def test_lists_with_keys_are_merged(api: KubernetesApi) -> None:
    """An item of the same key is changed, the others stay."""
    env = "Object.spec.containers.env{name: 'A', value: 'new'}"
    _install(
        api,
        _policy(
            "Object{spec: Object.spec{containers: object.spec.containers.map(c,"
            f" Object.spec.containers{{name: c.name, env: [{env}]}})}}}}"
        ),
    )
    containers = [{"name": "main", "image": "i", "env": [{"name": "A", "value": "x"}, {"name": "B"}]}]
    spec = api.must("POST", core("default", "pods"), pod("p", containers=containers))["spec"]
    (container,) = spec["containers"]
    assert container["image"] == "i"
    assert container["env"] == [{"name": "A", "value": "new"}, {"name": "B"}]


@pytest.mark.parametrize(("policy", "label"), [("IfNeeded", "after"), ("Never", None)])
def test_an_earlier_policy_gets_another_turn_if_it_asks_for_it(
    api: KubernetesApi, policy: str, label: str | None
) -> None:
    """The first looks for what the second does."""
    first = _labelling(
        "object.metadata.?annotations['by'].orValue('') == 'second' ? 'after' : ''",
        name="a",
        reinvocationPolicy=policy,
    )
    second = _policy("Object{metadata: Object.metadata{annotations: {'by': 'second'}}}", name="b")
    _install(api, first)
    _install(api, second)
    assert (_label(api) or None) == label


def test_defaults_are_filled_in_after_a_policy(api: KubernetesApi) -> None:
    """A container that a policy adds gets the defaults of every container."""
    container = "Object.spec.initContainers{name: 'added', image: 'example.com/i'}"
    _install(api, _policy(f"Object{{spec: Object.spec{{initContainers: [{container}]}}}}"))
    spec = api.must("POST", core("default", "pods"), pod("p"))["spec"]
    assert spec["initContainers"][0]["imagePullPolicy"] == "Always"


@pytest.mark.thorough
def test_policies_are_evaluated_in_many_threads_at_once(api: KubernetesApi) -> None:
    """Each pod gets what was computed for it."""
    _install(api, _labelling("object.metadata.name.substring(2)"))

    def label(number: int) -> str:
        body = pod(f"p-{number}")
        made = api.must("POST", core("default", "pods"), body, query={"dryRun": "All"})
        return str(made["metadata"]["labels"]["is"])

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(label, range(200))) == [str(number) for number in range(200)]
