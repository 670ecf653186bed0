"""`muster check` asks whether the accounts of the functions have the permissions of their roles."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from muster.cluster.errors import Unavailable
from muster.cluster.http.client import Client
from muster.data import EVENTING
from muster.objects import yaml_files
from muster.operator.check import Level, check_installation
from muster.operator.check.installation import _permissions, _policies_of_no_account
from muster.simulator.apiserver import ApiServer
from muster.simulator.overlays import built, load
from tests.support import cpu
from tests.unit.cli.check.test_check import YEARS_LATER, finding_about, findings
from tests.unit.cli.conftest import assert_names
from tests.unit.cluster.scripted import ScriptedResponse, serving


def test_permissions_are_asked_for_each_account() -> None:
    """One review for each verb and resource of its role; what is not allowed is named."""
    roles = [
        manifest for manifest in load(EVENTING / "rbac") if "dead-letter" in manifest["metadata"]["name"]
    ]
    replies = [ScriptedResponse(201, {"status": {"allowed": allowed}}) for allowed in (True, False, True)]
    with serving(
        *replies, ScriptedResponse(body={"items": [], "metadata": {"resourceVersion": "1"}})
    ) as script:
        found = findings(check_installation(Client.for_server(script.url), roles, YEARS_LATER))
    level, message = finding_about(found, " dead-letter")
    assert level == Level.FAIL
    assert_names(message, "list configmaps", "eventing/rbac")
    assert "create configmaps" not in message
    asked = [request.body["spec"] for request in script.requests[:3]]
    assert {review["user"] for review in asked} == {"system:serviceaccount:muster-system:dead-letter"}
    assert [review["resourceAttributes"]["verb"] for review in asked] == ["create", "list", "delete"]
    assert asked[0]["resourceAttributes"]["namespace"] == "muster-system"


def test_roles_of_a_million_combinations_are_not_checked() -> None:
    """A role of a kilobyte can have them, and each is a request."""
    roles = [
        copy.deepcopy(manifest)
        for manifest in load(EVENTING / "rbac")
        if "dead-letter" in manifest["metadata"]["name"]
    ]
    (rule, *_) = next(manifest["rules"] for manifest in roles if "rules" in manifest)
    rule |= {field: [f"{field}{n}" for n in range(100)] for field in ("verbs", "apiGroups", "resources")}
    allowed = {"status": {"allowed": True}, "items": [], "metadata": {"resourceVersion": "1"}}
    with serving(ScriptedResponse(201, allowed)) as script, cpu.at_most(2):
        found = findings(check_installation(Client.for_server(script.url), roles, YEARS_LATER))
    assert found["permissions"][0] == Level.WARN
    assert not [request for request in script.requests if request.method == "POST"]


@pytest.mark.parametrize("subjects", [[], [{"kind": "User", "name": "a"}]])
def test_thousands_of_rules_and_bindings_take_linear_time(subjects: list[dict[str, str]]) -> None:
    """Rules of no combination, and bindings of no subject, do not count for the limit by themselves."""
    rule: dict[str, list[str]] = {"verbs": [], "apiGroups": [], "resources": []}
    role = {"kind": "ClusterRole", "metadata": {"name": "a"}, "rules": [rule] * 3000}
    reference = {"kind": "ClusterRole", "name": "a"}
    bindings = [
        {
            "kind": "ClusterRoleBinding",
            "metadata": {"name": str(number)},
            "roleRef": reference,
            "subjects": subjects,
        }
        for number in range(3000)
    ]
    with cpu.at_most(0.5):
        found = list(_permissions(Client.for_server("http://127.0.0.1:9"), [role, *bindings]))
    assert bool(found) == bool(subjects)


@pytest.mark.thorough
def test_a_shared_account_is_one_finding() -> None:
    """In the overlay one-service: all that its roles grant, and what several of them grant is asked once."""
    overlay = load(built("one-service"))
    roles = [one for one in overlay if "rules" in one or "roleRef" in one]

    allowed = {"status": {"allowed": True}, "items": [], "metadata": {"resourceVersion": "1"}}
    with serving(ScriptedResponse(201, allowed)) as script:
        found = findings(check_installation(Client.for_server(script.url), roles, YEARS_LATER))
    assert {about for about in found if "permissions" in about} == {
        "permissions of muster",
        "permissions of muster-source",
    }
    asked = [str(request.body["spec"]) for request in script.requests if request.method == "POST"]
    assert len(asked) == len(set(asked)) > 40
    assert sum("'verb': 'create', 'group': '', 'resource': 'events'" in review for review in asked) == 1


def test_rights_of_an_account_that_is_not_installed() -> None:
    """Those of a component that is named after one-service, which has deleted the account by then."""
    component = load(EVENTING / "components/suspend-after-timeout")
    overlays = (load(built("one-service")), load())
    with ApiServer() as server:
        client = Client.for_server(server.url)
        found, whole = (
            findings(check_installation(client, [*one, *component], YEARS_LATER)) for one in overlays
        )
    assert found["account resize-gang"][0] is Level.WARN
    assert "account resize-gang" not in whole


def test_rights_of_a_group_are_asked_for_too() -> None:
    """The overlay one-namespace binds what is in no namespace to all accounts of the team's."""
    file = EVENTING / "overlays/one-namespace/cluster-scoped.yaml"
    replies = [ScriptedResponse(201, {"status": {"allowed": True}})] * 2
    with serving(
        *replies, ScriptedResponse(body={"items": [], "metadata": {"resourceVersion": "1"}})
    ) as script:
        objects = yaml_files.load_all(file.read_text())
        found = findings(check_installation(Client.for_server(script.url), objects, YEARS_LATER))
    level, message = finding_about(found, " system:serviceaccounts:team-a")
    assert (level, "2" in message) == (Level.OK, True)
    asked = [request.body["spec"] for request in script.requests[:2]]
    assert [review["groups"] for review in asked] == [["system:serviceaccounts:team-a"]] * 2
    assert not any("user" in review for review in asked)


@pytest.mark.parametrize(
    ("folder", "part", "status", "answer", "names"),
    [
        pytest.param("rbac", "dead-letter", 201, {"a": 1}, ["subjectaccessreviews", "status"], id="a review"),
        pytest.param("rbac", "dead-letter", 201, [1], ["subjectaccessreviews", "status"], id="a list"),
        pytest.param("admission", "muster", 200, {"metadata": {}}, ["admission", "spec"], id="a policy"),
        pytest.param(
            "triggers", "", 200, {"metadata": {}, "status": [1]}, ["triggers", "status"], id="a trigger"
        ),
    ],
)
def test_objects_that_something_else_answers_are_reported(
    folder: str, part: str, status: int, answer: Any, names: list[str]
) -> None:
    """A proxy may answer anything; it is no bug of the command."""
    objects = [manifest for manifest in load(EVENTING / folder) if part in manifest["metadata"]["name"]]
    with serving(ScriptedResponse(status, answer)) as script, pytest.raises(Unavailable) as caught:
        findings(check_installation(Client.for_server(script.url), objects, YEARS_LATER))
    assert_names(caught.value.message, *names)


@pytest.mark.parametrize("overlay", sorted(path.stem for path in (EVENTING / "built").iterdir()))
def test_every_policy_names_an_account_of_its_overlay(overlay: str) -> None:
    """Also in another namespace, or where all functions share an account."""
    assert list(_policies_of_no_account(load(built(overlay)))) == []
