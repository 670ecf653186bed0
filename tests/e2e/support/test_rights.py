"""The comparison of permissions reports excess, unused, borrowed and refused ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.kustomize import CLUSTER, load
from tests.conftest import Wording
from tests.e2e.support.rights import EVERYWHERE, Right, Rights, granted, refused
from tests.e2e.support.whole_run import WholeRun

PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "patch"]}
STATUS = {"apiGroups": ["batch"], "resources": ["jobs/status"], "verbs": ["patch"]}
LETTERS = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}
USES = [
    ("get", "pods", "team-a"),
    ("patch", "pods", "team-a"),
    ("patch", "jobs.batch/status", "team-a"),
]


def _manifests(*rules: dict[str, Any], kind: str = "ClusterRole") -> list[dict[str, Any]]:
    """A role with these rules, bound to the account patch-pods."""
    home = {"namespace": "muster-system"} if kind == "Role" else {}
    subject = {"kind": "ServiceAccount", "name": "patch-pods", "namespace": "muster-system"}
    reference = {"roleRef": {"kind": kind, "name": "muster-patch-pods"}, "subjects": [subject]}
    return [
        {"kind": kind, "metadata": {"name": "muster-patch-pods", **home}, "rules": list(rules)},
        {"kind": f"{kind}Binding", "metadata": {"name": "muster-patch-pods", **home}, **reference},
    ]


def _event(
    verb: str,
    resource: str,
    namespace: str = "",
    *,
    account: str = "patch-pods",
    binding: str = "muster-patch-pods",
    decision: str = "allow",
) -> dict[str, Any]:
    """An audit event as kube-apiserver 1.37.1 writes it, as far as it is read."""
    plural, _, subresource = resource.partition("/")
    name, _, group = plural.partition(".")
    where = f'of ClusterRole "{binding}" to ServiceAccount "{account}/muster-system"'
    parts = {"apiGroup": group, "resource": name, "namespace": namespace, "subresource": subresource}
    return {
        "verb": verb,
        "user": {"username": f"system:serviceaccount:muster-system:{account}"},
        "objectRef": {key: value for key, value in parts.items() if value},
        "annotations": {
            "authorization.k8s.io/decision": decision,
            "authorization.k8s.io/reason": f'RBAC: allowed by ClusterRoleBinding "{binding}" {where}',
        },
    }


def _rights(manifests: list[dict[str, Any]], *events: dict[str, Any]) -> Rights:
    rights = Rights()
    rights.add(manifests, events)
    return rights


def test_used_permissions_are_not_reported() -> None:
    """Each verb on each resource once: nothing unused, borrowed or refused."""
    rights = _rights(_manifests(PODS, STATUS), *(_event(*use) for use in USES))
    assert (rights.unused(), rights.borrowed, rights.refused) == ([], set(), set())


@pytest.mark.parametrize("left_out", USES, ids=" ".join)
def test_an_unused_verb_is_reported(left_out: tuple[str, str, str]) -> None:
    """Whichever it is."""
    events = (_event(*use) for use in USES if use != left_out)
    verb, resource, _ = left_out
    assert _rights(_manifests(PODS, STATUS), *events).unused() == [Right("patch-pods", verb, resource)]


def test_an_excess_grant_is_reported() -> None:
    """One verb more in the role, and it is unused."""
    more = PODS | {"verbs": ["get", "patch", "delete"]}
    unused = _rights(_manifests(more, STATUS), *(_event(*use) for use in USES)).unused()
    assert list(map(str, unused)) == ["patch-pods: delete pods"]


@pytest.mark.parametrize(
    ("kind", "namespace", "unused"),
    [
        pytest.param("ClusterRole", "team-a", False, id="all namespaces, used in another than Muster's own"),
        pytest.param("ClusterRole", "", False, id="all namespaces, used in all of them at once"),
        pytest.param("ClusterRole", "muster-system", True, id="all namespaces where a Role would have done"),
        pytest.param("Role", "muster-system", False, id="one namespace, used in it"),
        pytest.param("Role", "team-a", True, id="one namespace, used elsewhere"),
    ],
)
def test_a_right_to_all_namespaces_must_be_needed(kind: str, namespace: str, *, unused: bool) -> None:
    """A binding that is wider than what is done with it is a right too many."""
    rights = _rights(_manifests(LETTERS, kind=kind), _event("create", "configmaps", namespace))
    assert bool(rights.unused()) is unused


def test_the_rights_of_another_account_are_not_its_own() -> None:
    """What one function does leaves the same grant of another one unused."""
    events = (_event(*use, account="create-workload") for use in USES)
    assert len(_rights(_manifests(PODS, STATUS), *events).unused()) == 3


def test_a_name_that_is_granted_must_be_used() -> None:
    """`resourceNames`: a request for another name is none that needed it."""
    named = PODS | {"verbs": ["get"], "resourceNames": ["one"]}
    for name, unused in (("one", []), ("other", ["patch-pods: get pods one"])):
        event = _event("get", "pods", "team-a")
        event["objectRef"]["name"] = name
        assert list(map(str, _rights(_manifests(named), event).unused())) == unused


def test_a_request_that_another_binding_allowed_is_reported() -> None:
    """What only the cluster gives would be missing elsewhere; what all users or all sources get is fine."""
    borrowed = _event("get", "pods", "team-a", binding="system:somebody")
    basic = _event("create", "selfsubjectaccessreviews.authorization.k8s.io", binding="system:basic-user")
    token = _event("create", "serviceaccounts/token", "muster-system", binding="groups-create-oidc-token")
    rights = _rights(_manifests(PODS), borrowed, basic, token)
    assert rights.borrowed == {"patch-pods: get pods in team-a, allowed by system:somebody"}
    assert rights.used == set()


def test_a_request_that_rbac_refused_is_reported() -> None:
    """And is no use of anything; what admission refused was allowed by RBAC."""
    event = _event("get", "pods", "team-a", decision="forbid")
    rights = _rights(_manifests(PODS), event)
    assert rights.refused == set(refused([event])) == {Right("patch-pods", "get", "pods", "team-a")}
    assert rights.used == set()
    assert list(refused([_event("get", "pods", "team-a") | {"responseStatus": {"code": 403}}])) == []


def test_a_request_that_a_policy_refused_is_reported() -> None:
    """One of eventing/security/accounts: RBAC allowed it."""
    message = "pods \"one\" is forbidden: ValidatingAdmissionPolicy 'muster-patch-pods' denied request: no"
    event = _event("patch", "pods", "team-a") | {"responseStatus": {"code": 403, "message": message}}
    rights = _rights(_manifests(PODS), event, _event("patch", "pods", "team-a"))
    assert rights.denied == {f"system:serviceaccount:muster-system:patch-pods: patch: {message}"}
    assert rights.refused == set()


def test_requests_for_paths_need_no_permission() -> None:
    """Discovery is about paths."""
    event = _event("get", "pods") | {"objectRef": None, "requestURI": "/apis"}
    assert _rights(_manifests(PODS), event).used == set()


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(PODS | {"verbs": ["*"]}, id="a wildcard"),
        pytest.param({"nonResourceURLs": ["/metrics"], "verbs": ["get"]}, id="paths"),
    ],
)
def test_a_rule_that_does_not_say_what_it_grants_is_refused(wording: Wording, rule: dict[str, Any]) -> None:
    """It could never be compared."""
    with pytest.raises(ValueError, match="patch-pods") as refused:
        list(granted(_manifests({"apiGroups": [""], "resources": [], **rule})))
    wording(str(refused.value))


def test_a_binding_to_a_group_is_refused(wording: Wording) -> None:
    """The account that used it would be unknown."""
    role, binding = _manifests(PODS)
    binding["subjects"] = [{"kind": "Group", "name": "system:serviceaccounts"}]
    with pytest.raises(ValueError, match=binding["metadata"]["name"]) as refused:
        list(granted([role, binding]))
    wording(str(refused.value))


def test_the_manifests_of_eventing_can_be_read() -> None:
    """Every account has rights, and only dead letters have theirs in one namespace."""
    rights = set(granted(load(CLUSTER)))
    assert {right.account for right in rights if right.where != EVERYWHERE} == {"dead-letter"}
    assert {right.account for right in rights} > {"muster-source", "patch-pods", "dead-letter"}


@pytest.mark.parametrize(
    ("run", "gaps"),
    [
        pytest.param(WholeRun({Path("a"), Path("b")}), "", id="nothing is missing in a whole run"),
        pytest.param(WholeRun({Path("a")}), "not collected: b", id="one file was asked for"),
        pytest.param(WholeRun({Path("a"), Path("b")}, {"a::x"}), "left out: a::x", id="-k left a story out"),
        pytest.param(
            WholeRun({Path("a"), Path("b")}, set(), {"b::y"}),
            "did not pass: b::y",
            id="a story did not get to its end",
        ),
    ],
)
def test_missing_and_failed_stories_are_reported(run: WholeRun, gaps: str) -> None:
    """With part of the stories some rights are unused, which is no fault."""
    assert run.gaps([Path("a"), Path("b")]) == gaps
