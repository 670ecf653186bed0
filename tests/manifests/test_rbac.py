"""Each function may do what its step does, and nothing more."""

from __future__ import annotations

import pytest

from muster.kustomize import of_kind
from muster.runtime import dead_letter, steps
from muster.testing.manifests import rules_needed, rules_of
from tests.support.overlays import objects_of

OBJECTS = objects_of("overlays/cluster")
ROLES = {role["metadata"]["name"].removeprefix("muster-"): role for role in of_kind(OBJECTS, "ClusterRole")}
READS = {"get", "list", "watch"}
OWNER_STATUS = {"patch trainjobs/status", "patch jobsets/status", "patch jobs/status"}
GIVES_UP = OWNER_STATUS | {"create events"}

WRITES = {
    "create-workload": GIVES_UP
    | {"create workloads", "delete workloads", "create podgroups", "delete podgroups"}
    | {"delete compositepodgroups"},
    "create-pod-groups": {"create podgroups", "create compositepodgroups", "create events"},
    "patch-pods": {"patch pods"},
    "resize-gang": {
        "patch workloads",
        "patch podgroups",
        "create compositepodgroups",
        "delete compositepodgroups",
        "create events",
    },
    "emit-conditions": GIVES_UP,
    "mark-runtime": {
        "update trainingruntimes",
        "update clustertrainingruntimes",
        "create events",
    },
    "source": set(),
}
"""Design section 6: all that Muster ever writes, and which function writes it."""

GROUPS = {
    "trainjobs": "trainer.kubeflow.org",
    "trainingruntimes": "trainer.kubeflow.org",
    "clustertrainingruntimes": "trainer.kubeflow.org",
    "jobsets": "jobset.x-k8s.io",
    "jobs": "batch",
    "workloads": "scheduling.k8s.io",
    "podgroups": "scheduling.k8s.io",
    "compositepodgroups": "scheduling.k8s.io",
    "priorityclasses": "scheduling.k8s.io",
}
"""Where a resource lives; those left out are of the core group."""


def _granted(name: str) -> set[str]:
    return {
        f"{verb} {resource}"
        for rule in ROLES[name]["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_every_function_has_a_role_and_every_role_is_used() -> None:
    """A role for each function and one for the sources; each bound to the account that its user runs as."""
    functions = {trigger["metadata"]["name"] for trigger in of_kind(OBJECTS, "Trigger")}
    assert set(ROLES) == set(WRITES) == functions | {"source"}
    accounts = {account["metadata"]["name"] for account in of_kind(OBJECTS, "ServiceAccount")}
    assert accounts == functions | {"muster-source", "dead-letter"}


@pytest.mark.parametrize("name", sorted(ROLES))
def test_a_role_is_bound_to_its_own_account_only(name: str) -> None:
    """One binding, one subject, in Muster's namespace."""
    (binding,) = (
        binding
        for binding in of_kind(OBJECTS, "ClusterRoleBinding")
        if binding["roleRef"]["name"] == f"muster-{name}"
    )
    account = "muster-source" if name == "source" else name
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "muster-system"}]


def test_functions_and_sources_run_as_their_accounts() -> None:
    """An account that nothing runs as protects nothing; the default account may do nothing."""
    for service in of_kind(OBJECTS, "Service"):
        pod, name = service["spec"]["template"]["spec"], service["metadata"]["name"]
        assert pod["serviceAccountName"] == name
    accounts = {source["spec"]["serviceAccountName"] for source in of_kind(OBJECTS, "ApiServerSource")}
    assert accounts == {"muster-source"}


@pytest.mark.parametrize("name", sorted(ROLES))
def test_no_role_writes_beyond_the_design(name: str) -> None:
    """What is granted beside get, list and watch is this, verb by verb."""
    assert {grant for grant in _granted(name) if grant.split()[0] not in READS} == WRITES[name]


@pytest.mark.parametrize("name", sorted(ROLES))
def test_no_role_has_a_wildcard_or_more_than_it_needs(name: str) -> None:
    """No `*`, no secrets, no rule for another API group than the resource's, no verb that hides others."""
    for rule in ROLES[name]["rules"]:
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
        assert {GROUPS.get(resource.partition("/")[0], "") for resource in rule["resources"]} == set(
            rule["apiGroups"]
        )
    assert not any(grant.endswith((" secrets", "/finalizers", "/scale")) for grant in _granted(name))


@pytest.mark.parametrize("name", sorted(set(WRITES) - {"source", "mark-runtime"}))
def test_every_function_reads_owners_and_groups(name: str) -> None:
    """A step reads the live object before it writes; a sweep lists them, patch-pods' lists pods instead."""
    kinds = ("trainjobs", "jobsets", "jobs", "workloads", "podgroups")
    listed = kinds[2:] if name == "patch-pods" else kinds
    assert {f"get {kind}" for kind in kinds} | {f"list {kind}" for kind in listed} <= _granted(name)
    assert ("list trainjobs" in _granted(name)) == (name != "patch-pods")
    assert "get namespaces" in _granted(name)
    assert "watch" not in {grant.split()[0] for grant in _granted(name)}


def test_the_source_may_watch_its_kinds() -> None:
    """get, list and watch for each kind in the sources, cluster-wide."""
    granted = _granted("source")
    for source in of_kind(OBJECTS, "ApiServerSource"):
        for resource in source["spec"]["resources"]:
            plural = f"{resource['kind'].lower()}s"
            assert {f"{verb} {plural}" for verb in READS} <= granted


def test_dead_letters_may_keep_config_maps_of_their_own_namespace_only() -> None:
    """A Role, no ClusterRole; nothing is read back, and nothing else is touched."""
    (role,) = of_kind(OBJECTS, "Role")
    (binding,) = of_kind(OBJECTS, "RoleBinding")
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list", "delete"]}
    ]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [
        {"kind": "ServiceAccount", "name": "dead-letter", "namespace": "muster-system"}
    ]


@pytest.mark.parametrize("name", sorted(set(ROLES) - {"source"}))
def test_no_function_reads_other_config_maps_than_policies(name: str) -> None:
    """A ConfigMap of a tenant is none of Muster's business, unless it is called muster-policy."""
    named = [rule.get("resourceNames") for rule in ROLES[name]["rules"] if "configmaps" in rule["resources"]]
    assert named == ([] if name == "mark-runtime" else [["muster-policy"]])


@pytest.mark.parametrize("name", sorted(set(ROLES) - {"source"}))
def test_a_step_checks_the_permissions_that_its_role_grants(name: str) -> None:
    """The permissions in its code, of which readiness reports the missing ones, are its role's."""
    assert rules_needed(steps.step_named(name).permissions) == rules_of(ROLES[name])


def test_dead_letter_checks_the_permissions_that_its_role_grants() -> None:
    """Likewise."""
    (role,) = of_kind(OBJECTS, "Role")
    assert rules_needed(dead_letter.PERMISSIONS) == rules_of(role)
