"""The policies in eventing/security/accounts cover all that the roles grant; tests/contract tries them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from muster.data import EVENTING
from muster.kustomize import Manifest, load, of_kind
from muster.objects.resources import EVENTS
from muster.policy import group_labels
from muster.policy.group_labels import MANAGED_BY, OWNER_UID
from muster.policy.groups.manifests import FALLBACK
from muster.policy.owners import job
from muster.policy.plans import mark_runtime
from muster.policy.sources.runtime_labels import LABELS
from muster.policy.status import conditions

FOLDER = EVENTING / "security" / "accounts"
OVERLAYS = sorted(path for path in (EVENTING / "overlays").iterdir() if path.is_dir())
POLICY, BINDING = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"
OPERATIONS = {"create": "CREATE", "update": "UPDATE", "patch": "UPDATE", "delete": "DELETE"}
ALL = load(FOLDER)
POLICIES = {policy["metadata"]["name"].removeprefix("muster-"): policy for policy in of_kind(ALL, POLICY)}

Write = tuple[str, str, str]
"""Operation, API group and resource with its subresource."""


def _writes(objects: list[Manifest], account: str) -> Iterator[Write]:
    """Every write that the roles in these objects grant to a service account, by their bindings."""
    roles = {(one["kind"], one["metadata"]["name"]): one for one in objects if "rules" in one}
    for binding in (one for one in objects if "roleRef" in one):
        if account in {subject["name"] for subject in binding["subjects"]}:
            yield from _granted(roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]])


def _granted(role: Manifest) -> Iterator[Write]:
    """Every write that a role grants."""
    for rule in role["rules"]:
        for verb in OPERATIONS.keys() & set(rule["verbs"]):
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    yield OPERATIONS[verb], group, resource


def _judged(policy: Manifest) -> set[Write]:
    """Every write that a policy looks at."""
    return {
        (operation, group, resource)
        for rule in policy["spec"]["matchConstraints"]["resourceRules"]
        for operation in rule["operations"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: str(path.name))
def test_every_account_that_may_write_has_its_policy(overlay: Path) -> None:
    """In every overlay: all that its roles grant is judged, and a policy is there for each such account."""
    objects = load(overlay)
    judged: dict[str, set[Write]] = {}
    for policy in of_kind(objects, POLICY):
        user = policy["spec"]["matchConditions"][0]["expression"]
        judged[user] = judged.get(user, set()) | _judged(policy)
    granted = {}
    for account in of_kind(objects, "ServiceAccount"):
        name, namespace = account["metadata"]["name"], account["metadata"]["namespace"]
        if writes := set(_writes(objects, name)):
            granted[f"request.userInfo.username == 'system:serviceaccount:{namespace}:{name}'"] = writes
    assert granted == judged
    assert len(set().union(*granted.values())) >= 12


@pytest.mark.parametrize("overlay", OVERLAYS, ids=lambda path: str(path.name))
def test_every_policy_is_bound_and_denies(overlay: Path) -> None:
    """A policy without a binding acts nowhere; one with the action Warn refuses nothing."""
    objects = load(overlay)
    bindings = {one["metadata"]["name"]: one["spec"] for one in of_kind(objects, BINDING)}
    names = {one["metadata"]["name"] for one in of_kind(objects, POLICY)}
    assert bindings == {name: {"policyName": name, "validationActions": ["Deny"]} for name in names}


@pytest.mark.parametrize("account", POLICIES)
def test_a_policy_is_about_one_account_and_fails_closed(account: str) -> None:
    """The first and only condition is the user, so that no one else's request can be refused."""
    spec = POLICIES[account]["spec"]
    (condition,) = spec["matchConditions"]
    assert condition["expression"].endswith(f":{account}'")
    assert spec["failurePolicy"] == "Fail"
    # Forbidden is answered with 503, after which the event is delivered again; Invalid with 500, as a bug.
    assert {validation["reason"] for validation in spec["validations"]} == {"Forbidden"}


@pytest.mark.parametrize("account", POLICIES)
def test_any_version_of_a_group_is_judged(account: str) -> None:
    """A version that a later release serves evades no policy."""
    for rule in POLICIES[account]["spec"]["matchConstraints"]["resourceRules"]:
        if "scheduling.k8s.io" in rule["apiGroups"]:
            assert rule["apiVersions"] == ["*"]


def test_installations_share_no_names() -> None:
    """The policies are in no namespace: two installations must not write each other's."""
    of_team = load(EVENTING / "overlays" / "one-namespace" / "accounts")
    ours, theirs = ({one["metadata"]["name"] for one in objects} for objects in (ALL, of_team))
    assert ours.isdisjoint(theirs)
    assert all(name.endswith("-team-a") for name in theirs)


def test_the_same_rule_is_the_same_text() -> None:
    """What two accounts may write alike is judged by the same expressions, but for the account's name."""
    texts = {
        account: {
            re.sub("|".join(POLICIES), "ACCOUNT", validation["expression"])
            for validation in policy["spec"]["validations"]
        }
        for account, policy in POLICIES.items()
    }
    assert texts["emit-conditions"] < texts["create-workload"]
    assert texts["create-pod-groups"] < texts["create-workload"]
    assert len(texts["resize-gang"] & texts["create-workload"]) == 10


def test_the_rule_about_managed_fields_is_the_same_for_all_that_update() -> None:
    """Each leaves out the entries of its own manager; the component that suspends creates nothing."""
    suspending = of_kind(load(EVENTING / "components" / "suspend-after-timeout"), POLICY)
    rules: dict[str, str] = {}
    for policy in (*POLICIES.values(), *suspending):
        (rule,) = (one for one in policy["spec"]["validations"] if "managedFields larger" in one["message"])
        manager = f"'muster-{rule['message'].partition(' ')[0]}'"
        beyond = " ".join(rule["expression"].replace(manager, "MANAGER").split()).partition("<= 65536")[2]
        if beyond:
            rules[policy["metadata"]["name"]] = beyond.replace("|| request.operation == 'UPDATE' &&", "||")
    names = {"muster-patch-pods", "muster-mark-runtime", "muster-resize-gang", "muster-suspend-after-timeout"}
    assert set(rules) == names
    assert len(set(rules.values())) == 1


def test_the_policies_and_the_plans_use_the_same_keys() -> None:
    """Each key that a step writes is in its policy, letter by letter."""
    keys = {
        "patch-pods": [group_labels.GATE],
        "mark-runtime": [*LABELS, mark_runtime.KAI, mark_runtime.KAI_QUEUE, mark_runtime.KAI_MINIMUM],
        "emit-conditions": [
            conditions.NOT_SCHEDULED,
            *(
                f"{prefix}{kind}"
                for prefix in ("", job.CONDITION_PREFIX)
                for kind in (conditions.READY, conditions.SCHEDULED)
            ),
        ],
        "create-workload": [MANAGED_BY, OWNER_UID],
        "create-pod-groups": [MANAGED_BY, OWNER_UID],
        "resize-gang": [FALLBACK, MANAGED_BY, OWNER_UID],
    }
    for account, needed in keys.items():
        text = (FOLDER / f"{account}.yaml").read_text()
        assert [key for key in needed if f"'{key}'" not in text] == [], account


def test_the_policies_of_one_service_are_the_union() -> None:
    """The rules of every account's policy hold for the shared one; those of Events are one policy for all."""
    objects = of_kind(load(EVENTING / "overlays" / "one-service"), POLICY)
    shared = {one["metadata"]["name"].removeprefix("muster-"): one for one in objects}
    events = shared.pop("events")
    assert shared.keys() == POLICIES.keys()
    for account, policy in POLICIES.items():
        theirs, ours = policy["spec"], shared[account]["spec"]
        assert ours["validations"] == theirs["validations"]
        assert ours["variables"] == theirs["variables"]
        assert _judged(shared[account]) == _judged(policy) - {("CREATE", "", EVENTS.plural)}
    assert _judged(events) == {("CREATE", "", EVENTS.plural)}
    writers = {account for account in POLICIES if ("CREATE", "", EVENTS.plural) in _judged(POLICIES[account])}
    named = set(re.findall(r"'muster-([a-z-]+)'", str(events["spec"]["validations"])))
    assert named == writers


def test_the_component_to_suspend_goes_with_one_service(tmp_path: Path) -> None:
    """Named before it, its role and its policy are those of the shared account."""
    components = [str(EVENTING / "components" / name) for name in ("suspend-after-timeout", "one-service")]
    overlay = {"resources": [str(EVENTING / "overlays" / "cluster")], "components": components}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    objects = load(tmp_path)
    users = {one["spec"]["matchConditions"][0]["expression"] for one in of_kind(objects, POLICY)}
    assert users == {"request.userInfo.username == 'system:serviceaccount:muster-system:muster'"}
    bindings = of_kind(objects, "ClusterRoleBinding")
    assert "muster-suspend-after-timeout" in {binding["metadata"]["name"] for binding in bindings}
    bound = {subject["name"] for binding in bindings for subject in binding["subjects"]}
    assert bound == {"muster", "muster-source"}


def test_events_carry_the_name_of_the_step() -> None:
    """The component of an Event is the field manager of the step."""
    for account, policy in POLICIES.items():
        if ("CREATE", "", EVENTS.plural) in _judged(policy):
            assert f"== 'muster-{account}'" in str(policy["spec"]["validations"])


def test_the_component_that_lets_owners_be_suspended_judges_all_it_grants() -> None:
    """Added to an overlay, its role and its policy are for resize-gang, and of the same writes."""
    objects = load(EVENTING / "components" / "suspend-after-timeout")
    (role, policy, binding) = (of_kind(objects, kind)[0] for kind in ("ClusterRole", POLICY, BINDING))
    assert set(_granted(role)) == _judged(policy)
    assert {role["metadata"]["name"], binding["spec"]["policyName"]} == {policy["metadata"]["name"]}
    judged = POLICIES["resize-gang"]["spec"]["matchConditions"][0]["expression"]
    assert policy["spec"]["matchConditions"][0]["expression"] == judged
