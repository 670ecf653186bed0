"""The policies in eventing/security/accounts cover what the roles grant; tests/contract tries them."""

from __future__ import annotations

import re

import pytest

from muster.policy import group_labels
from muster.policy.owners import job
from muster.policy.plans import mark_runtime
from muster.policy.sources.runtime_labels import LABELS
from muster.policy.status import conditions
from muster.simulator.overlays import Manifest, of_kind
from muster.testing.manifests import rules_of
from tests.manifests.built import OVERLAYS
from tests.support.overlays import objects_in, objects_of

POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
OPERATIONS = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}
UNLIMITED = {"events", "configmaps"}
"""What may be written beside the objects that the policies are about."""
ACCOUNTS = re.compile(r"\^system:serviceaccount:([a-z-]+):\(([a-z|-]+)\)\$")


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_account_that_may_write_is_judged(overlay: str) -> None:
    """Each write that a role grants is of a resource that a policy looks at."""
    objects = objects_of(overlay)
    judged, names = set(), set()
    for policy in _of_accounts(objects, POLICY):
        (condition,) = policy["spec"]["matchConditions"]
        (found,) = ACCOUNTS.findall(condition["expression"])
        names.add(found)
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]:
            assert rule["apiVersions"] == ["*"], "a version of a later release evades no policy"
            operations = OPERATIONS.values() if "*" in rule["operations"] else rule["operations"]
            judged |= {(operation, name) for operation in operations for name in rule["resources"]}
    roles = [*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")]
    rules = [rule for role in roles for rule in rules_of(role)]
    granted = {(OPERATIONS[verb], resource) for verb, _, resource, _ in rules if verb in OPERATIONS}
    assert {write for write in granted if write[1] not in UNLIMITED} <= judged
    ((namespace, accounts),) = names
    writing = [
        one for one in of_kind(objects, "ServiceAccount") if one["metadata"]["name"] != "muster-source"
    ]
    assert {one["metadata"]["namespace"] for one in writing} == {namespace}
    assert {one["metadata"]["name"] for one in writing} - {"dead-letter"} <= set(accounts.split("|"))


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_policy_is_bound_and_denies(overlay: str) -> None:
    """And fails closed, with 403: the event then comes again."""
    objects = objects_of(overlay)
    bindings = {one["metadata"]["name"]: one["spec"] for one in _of_accounts(objects, BINDING)}
    names = {one["metadata"]["name"] for one in _of_accounts(objects, POLICY)}
    assert bindings == {name: {"policyName": name, "validationActions": ["Deny"]} for name in names}
    assert len(names) == 3
    for policy in _of_accounts(objects, POLICY):
        assert policy["spec"]["failurePolicy"] == "Fail"
        assert {one["reason"] for one in policy["spec"]["validations"]} == {"Forbidden"}


def test_the_policies_and_the_plans_use_the_same_keys() -> None:
    """Each key that a step writes is in its policy, letter by letter."""
    types = {
        f"{prefix}{kind}"
        for prefix in ("", job.CONDITION_PREFIX)
        for kind in (conditions.READY, conditions.SCHEDULED)
    }
    keys = {
        "muster-groups": {group_labels.MANAGED_BY, group_labels.OWNER_UID, group_labels.GANG},
        "muster-pods-and-owners": {group_labels.GATE, group_labels.GATED, conditions.NOT_SCHEDULED, *types},
        "muster-runtimes": {*LABELS, mark_runtime.KAI, mark_runtime.KAI_QUEUE, mark_runtime.KAI_MINIMUM},
    }
    policies = {one["metadata"]["name"]: one for one in of_kind(objects_in("security/accounts"), POLICY)}
    assert policies.keys() == keys.keys()
    for name, needed in keys.items():
        text = str(policies[name]["spec"]["variables"] if name != "muster-groups" else policies[name]["spec"])
        text += str(policies[name]["spec"]["validations"])
        assert {key for key in needed if f"'{key}'" not in text} == set(), name


def _of_accounts(objects: list[Manifest], kind: str) -> list[Manifest]:
    """Return the policies that judge Muster's accounts, without that which judges pods of users."""
    return [one for one in of_kind(objects, kind) if "check-gangs" not in one["metadata"]["name"]]
