"""ValidatingAdmissionPolicies: which writes they judge and refuse, and what happens where they fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.cluster.api import MERGE_PATCH, ApiResponse, KubernetesApi
from tests.contract.bodies import Object, config_map, core, job, jobs, serve_widgets, widget, widgets

ADMISSION = "/apis/admissionregistration.k8s.io/v1/"
MAPS: Object = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["*"],
    "resources": ["configmaps"],
}
PATH = core("default", "configmaps")
LABEL = {"metadata": {"labels": {"a": "b"}}}


def _install(api: KubernetesApi, *expressions: str, binding: Object | None = None, **spec: Any) -> None:
    """A policy with these validations about ConfigMaps, and its binding."""
    given: Object = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [MAPS]},
        "validations": [{"expression": expression} for expression in expressions],
    }
    bound: Object = {"policyName": "p", "validationActions": ["Deny"]}
    for plural, body in (
        ("validatingadmissionpolicies", given | spec),
        ("validatingadmissionpolicybindings", bound | (binding or {})),
    ):
        api.must("POST", ADMISSION + plural, {"metadata": {"name": "p"}, "spec": body})


def _create(api: KubernetesApi, name: str = "one", **more: Any) -> ApiResponse:
    return api.request("POST", PATH, config_map(name, **more))


@pytest.mark.parametrize(
    ("reason", "status"),
    [("", 422), ("Invalid", 422), ("Forbidden", 403), ("Unauthorized", 401), ("RequestEntityTooLarge", 413)],
)
def test_the_reason_gives_the_status(api: KubernetesApi, reason: str, status: int) -> None:
    """Invalid where the validation names none."""
    validation = {"expression": "false", "message": "never"} | ({"reason": reason} if reason else {})
    _install(api, validations=[validation])
    answer = _create(api)
    assert (answer.status, answer.reason) == (status, reason or "Invalid")
    assert "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: never" in answer.message
    assert not api.request("GET", f"{PATH}/one").ok


def test_every_validation_has_to_hold(api: KubernetesApi) -> None:
    """The first that does not is the answer; without a message its expression is."""
    _install(api, "true", "object.data.key != 'value'", "false")
    assert "failed expression: object.data.key != 'value'" in _create(api).message


@pytest.mark.parametrize(
    ("operation", "old", "new"), [("CREATE", False, True), ("UPDATE", True, True), ("DELETE", True, False)]
)
def test_object_and_old_object_of_expressions(
    api: KubernetesApi, operation: str, *, old: bool, new: bool
) -> None:
    """The object after the write and before it: null where there is none."""
    has = f"(oldObject != null) == {str(old).lower()} && (object != null) == {str(new).lower()}"
    _install(api, f"request.operation != '{operation}' || ({has} && request.name == 'one')")
    assert _create(api).ok
    assert api.request("PATCH", f"{PATH}/one", LABEL, MERGE_PATCH).ok
    assert api.request("DELETE", f"{PATH}/one").ok


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "DELETE collection"])
def test_no_write_gets_past(api: KubernetesApi, method: str) -> None:
    """Whatever the verb."""
    stored = api.must("POST", PATH, config_map("one"))
    _install(api, "request.operation == 'CREATE'")
    match method:
        case "PUT":
            answer = api.request("PUT", f"{PATH}/one", stored)
        case "PATCH":
            answer = api.request("PATCH", f"{PATH}/one", LABEL, MERGE_PATCH)
        case "DELETE":
            answer = api.request("DELETE", f"{PATH}/one")
        case _:
            answer = api.request("DELETE", PATH)
    assert answer.status == 422
    assert (
        api.must("GET", f"{PATH}/one")["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    )


def test_the_user_is_the_bearer_token(api: KubernetesApi) -> None:
    """Without a token it is an administrator."""
    one, other = "system:serviceaccount:a:one", "system:serviceaccount:a:other"
    condition = {"name": "user", "expression": f"request.userInfo.username == '{one}'"}
    _install(api, "false", matchConditions=[condition])
    assert _create(api).ok
    assert not _create(replace(api, token=one), "two").ok
    assert _create(replace(api, token=other), "three").ok


def test_a_subresource_is_a_resource_of_its_own(api: KubernetesApi) -> None:
    """The rule names it, and the request has it; of the object itself the request has none."""
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    rules = [{**rule, "resources": ["jobs/status"]}]
    _install(api, "request.subResource != 'status'", matchConstraints={"resourceRules": rules})
    api.must("POST", jobs("default"), job())
    assert api.request("PATCH", jobs("default", "job"), LABEL, MERGE_PATCH).ok
    answer = api.request("PATCH", f"{jobs('default', 'job')}/status", {"status": {"active": 1}}, MERGE_PATCH)
    assert answer.status == 422


def test_a_request_has_no_empty_fields(api: KubernetesApi) -> None:
    """As in Go's JSON: a policy that asks for one fails, and has to ask whether it is there."""
    _install(api, "request.subResource == ''")
    assert _create(api).status == 422


def test_custom_resources_are_judged(api: KubernetesApi) -> None:
    """Like built-in ones."""
    serve_widgets(api, "default")
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["widgets"]}
    _install(api, "object.spec.size < 3", matchConstraints={"resourceRules": [rule]})
    assert api.request("POST", widgets("default"), widget()).ok
    assert api.request("POST", widgets("default"), widget("big", size=3)).status == 422


@pytest.mark.parametrize("place", ["a condition", "a validation", "a variable"])
@pytest.mark.parametrize("failing", ["object.data.none == ''", "no CEL", "variables.none"])
def test_a_failing_expression_refuses_or_lets_through(api: KubernetesApi, place: str, failing: str) -> None:
    """As its failurePolicy says."""
    spec: dict[str, tuple[str, Object]] = {
        "a condition": ("true", {"matchConditions": [{"name": "c", "expression": failing}]}),
        "a validation": (failing, {}),
        "a variable": ("variables.v", {"variables": [{"name": "v", "expression": failing}]}),
    }
    expression, more = spec[place]
    _install(api, expression, **more)
    assert _create(api).status == 422
    change = {"spec": {"failurePolicy": "Ignore"}}
    api.must("PATCH", f"{ADMISSION}validatingadmissionpolicies/p", change, MERGE_PATCH)
    assert _create(api).ok


@pytest.mark.parametrize(
    "binding",
    [
        pytest.param({"validationActions": ["Warn", "Audit"]}, id="it only warns"),
        pytest.param({"policyName": "other"}, id="it binds another policy"),
        pytest.param(
            {"matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "x"}}}},
            id="it is about another namespace",
        ),
        pytest.param(
            {"matchResources": {"excludeResourceRules": [MAPS]}}, id="it leaves these resources out"
        ),
    ],
)
def test_a_binding_decides_where(api: KubernetesApi, binding: Object) -> None:
    """Where it does not deny, the write is made."""
    _install(api, "false", binding=binding)
    assert _create(api).ok


def test_labels_before_or_after_select(api: KubernetesApi) -> None:
    """An update cannot evade a policy by taking the label away."""
    constraints = {"resourceRules": [MAPS], "objectSelector": {"matchLabels": {"a": "b"}}}
    assert _create(api, labels={"a": "b"}).ok
    assert _create(api, "two").ok
    _install(api, "false", matchConstraints=constraints)
    away = {"metadata": {"labels": None}}
    assert not api.request("PATCH", f"{PATH}/one", away, MERGE_PATCH).ok
    assert not api.request("PATCH", f"{PATH}/two", LABEL, MERGE_PATCH).ok
    assert api.request("PATCH", f"{PATH}/two", {"data": {"c": "d"}}, MERGE_PATCH).ok


def test_policies_are_not_judged(api: KubernetesApi) -> None:
    """Else one that refuses everything could never be deleted."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    _install(api, "false", matchConstraints={"resourceRules": [rule]})
    api.must("DELETE", f"{ADMISSION}validatingadmissionpolicies/p")
    assert _create(api).ok
