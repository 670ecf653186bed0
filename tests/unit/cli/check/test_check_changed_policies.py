"""`muster check` compares admission policies with those of the overlay, whatever fields somebody added."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muster.cluster.http.client import Client
from muster.operator.check import Level, check_installation
from muster.simulator.apiserver import ApiServer
from muster.simulator.overlays import load
from tests.unit.cli.check.test_check import ACCOUNTS, LIMITS, POLICIES, YEARS_LATER, installed

NOWHERE = {"matchLabels": {"no": "where"}}
ALL_PODS = {"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"], "resources": ["pods"]}
DEFAULTS = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"


def _changed(objects: list[Any], kind: str, name: str, field: str, value: Any) -> list[Any]:
    """The objects, in one of which a mapping of the spec has more fields."""
    objects = copy.deepcopy(objects)
    (spec,) = (each["spec"] for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    spec[field] = {**spec.get(field, {}), **value}
    return objects


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        pytest.param(
            POLICY, "matchConstraints", {"excludeResourceRules": [ALL_PODS]}, id="excludes what it covers"
        ),
        pytest.param(POLICY, "matchConstraints", {"objectSelector": NOWHERE}, id="covers no object"),
        pytest.param(POLICY, "matchConstraints", {"namespaceSelector": NOWHERE}, id="covers no namespace"),
        pytest.param(POLICY, "matchConstraints", {"matchPolicy": "Exact"}, id="covers one version only"),
        pytest.param(POLICY, "paramKind", {"apiVersion": "v1", "kind": "ConfigMap"}, id="needs an object"),
        pytest.param(BINDING, "matchResources", {"namespaceSelector": NOWHERE}, id="is bound to nothing"),
        pytest.param(BINDING, "matchResources", {"resourceRules": [ALL_PODS]}, id="is bound to less"),
    ],
)
def test_a_policy_of_an_account_that_covers_less(kind: str, field: str, value: Any) -> None:
    """A stolen token could then write all that the role of the account allows."""
    level, message = installed(*_changed(LIMITS, kind, "muster-patch-pods", field, value))[ACCOUNTS]
    assert (level, "muster-patch-pods" in message) == (Level.WARN, True)


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        pytest.param(POLICY, "matchConstraints", DEFAULTS, id="of a policy"),
        pytest.param(BINDING, "matchResources", DEFAULTS, id="of a binding"),
        pytest.param(
            BINDING, "matchResources", {"namespaceSelector": {"matchLabels": {}}}, id="an empty selector"
        ),
        pytest.param(POLICY, "matchConstraints", {"excludeResourceRules": []}, id="an empty list"),
    ],
)
def test_what_the_api_server_adds_is_no_change(kind: str, field: str, value: Any) -> None:
    """Fields that mean the same as their absence."""
    level, _ = installed(*_changed(LIMITS, kind, "muster-patch-pods", field, value))[ACCOUNTS]
    assert level == Level.OK


def test_a_policy_of_pods_that_covers_less() -> None:
    """Pods of the others would get no group."""
    kind, name = "MutatingAdmissionPolicyBinding", "muster-stamp-pods"
    found = installed(*_changed(POLICIES, kind, name, "matchResources", {"namespaceSelector": NOWHERE}))
    assert found[f"{kind} {name}"][0] == Level.WARN


def test_bindings_of_others_are_no_fault() -> None:
    """An overlay may bind accounts of other namespaces, roles that the cluster has, or nobody."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    others = {"kind": "ServiceAccount", "namespace": "monitoring", "name": "prometheus"}
    without: tuple[dict[str, Any], ...] = ({"subjects": [others]}, {}, {"subjects": None})
    bindings: list[dict[str, Any]] = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": f"binding-{number}", "namespace": "muster-system"},
            "roleRef": role,
            **subjects,
        }
        for number, subjects in enumerate(without)
    ]
    with ApiServer() as server:
        client = Client.for_server(server.url)
        found = {entry.about for entry in check_installation(client, [*load(), *bindings], YEARS_LATER)}
    assert not any("prometheus" in about for about in found)
