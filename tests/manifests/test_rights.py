"""Each function may do what its step asks for, and nothing more."""

from __future__ import annotations

import pytest

from muster.runtime import dead_letter, steps
from muster.simulator.overlays import of_kind
from muster.testing.manifests import rules_needed, rules_of
from tests.support.overlays import objects_in, objects_of

OBJECTS = [*objects_of("cluster"), *objects_in("components/restart-gang")]
ROLES = {role["metadata"]["name"].removeprefix("muster-"): role for role in of_kind(OBJECTS, "ClusterRole")}
READS = {"get", "list", "watch"}
OWNER_STATUS = {"patch trainjobs/status", "patch jobsets/status", "patch jobs/status"}
GIVES_UP = OWNER_STATUS | {"create events"}
WRITES = {
    "create-workload": GIVES_UP
    | {"create workloads", "delete workloads", "create podgroups", "delete podgroups"}
    | {"delete compositepodgroups"},
    "create-pod-groups": {"create podgroups", "create compositepodgroups", "create events"},
    "gather-pods": {"create podgroups", "patch podgroups", "delete podgroups", "create events"},
    "patch-pods": {"patch pods"},
    "resize-gang": {"patch workloads", "patch podgroups", "create events", "delete podgroups"}
    | {"create compositepodgroups", "delete compositepodgroups"},
    "emit-conditions": GIVES_UP | {"patch podgroups"},
    "mark-runtime": {"update trainingruntimes", "update clustertrainingruntimes", "create events"},
    "restart-gang": {"create pods/eviction", "patch jobs/status", "create events"},
    "source": set(),
}
"""All that Muster ever writes, and which function writes it."""


def _granted(name: str) -> set[str]:
    return {
        f"{verb} {resource}"
        for rule in ROLES[name]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("name", sorted(set(ROLES) - {"source"}))
def test_a_role_grants_what_its_step_asks_for(name: str) -> None:
    """Readiness asks the API server for the same permissions."""
    assert rules_needed(steps.step_named(name).all_permissions) == rules_of(ROLES[name])


def test_the_role_of_dead_letter_grants_what_it_asks_for() -> None:
    """ConfigMaps of its own namespace only."""
    (role,) = of_kind(OBJECTS, "Role")
    assert rules_needed(dead_letter.PERMISSIONS) == rules_of(role)
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {"configmaps"}


def test_no_role_writes_beyond_the_design() -> None:
    """Verb by verb; none has a wildcard, and none reads secrets."""
    written = {
        name: {grant for grant in _granted(name) if grant.split()[0] not in READS} for name in sorted(ROLES)
    }
    assert written == WRITES
    for role in ROLES.values():
        assert "*" not in str(role["rules"])
        assert "secrets" not in str(role["rules"])


@pytest.mark.parametrize("name", sorted(set(ROLES) - {"source"}))
def test_no_function_reads_other_config_maps_than_policies(name: str) -> None:
    """A ConfigMap of a tenant is none of Muster's business, unless it is called muster-policy."""
    named = [rule.get("resourceNames") for rule in ROLES[name]["rules"] if "configmaps" in rule["resources"]]
    assert named == ([] if name == "mark-runtime" else [["muster-policy"]])


def test_a_role_is_bound_to_its_own_account_only() -> None:
    """Functions and sources run as their accounts."""
    for binding in of_kind(OBJECTS, "ClusterRoleBinding"):
        name = binding["roleRef"]["name"].removeprefix("muster-")
        (subject,) = binding["subjects"]
        assert subject["name"] == ("muster-source" if name == "source" else name)
    for service in of_kind(OBJECTS, "Service"):
        assert service["spec"]["template"]["spec"]["serviceAccountName"] == service["metadata"]["name"]
    for source in of_kind(OBJECTS, "ApiServerSource"):
        assert source["spec"]["serviceAccountName"] == "muster-source"
        plurals = [f"{resource['kind'].lower()}s" for resource in source["spec"]["resources"]]
        assert {f"{verb} {plural}" for plural in plurals for verb in READS} <= _granted("source")
