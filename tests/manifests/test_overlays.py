"""Overlays hold what their comments promise."""

from __future__ import annotations

import pytest

from muster.data import EVENTING
from muster.runtime.config import from_environment
from muster.simulator.broker import Wiring
from muster.simulator.broker.delivery import destination
from muster.simulator.overlays import Manifest, of_kind
from tests.support.overlays import objects_of

ONE_NAMESPACE = objects_of("one-namespace")
ONE_SERVICE = objects_of("one-service")
WHOLE = objects_of("cluster")
TEAM = "team-a"
EVERYWHERE = {
    "Namespace",
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}
"""Kinds that are in no namespace."""

each_service = pytest.mark.parametrize(
    "service",
    [*of_kind(WHOLE, "Service"), *of_kind(ONE_SERVICE, "Service")],
    ids=lambda manifest: str(manifest["metadata"]["name"]),
)


@pytest.mark.parametrize(
    ("overlay", "kinds"),
    [
        ("composite-pod-groups", {"ApiServerSource"}),
        ("kubernetes-1.36", {"ApiServerSource"}),
        ("native-jobs", {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}),
    ],
)
def test_overlays_for_other_clusters_change_nothing_else(overlay: str, kinds: set[str]) -> None:
    """Functions, triggers and roles are the same, so that going from one to another moves no job."""
    here = objects_of(overlay)
    differing = [one for one in here if one not in WHOLE] + [one for one in WHOLE if one not in here]
    assert {manifest["kind"] for manifest in differing} == kinds
    assert f"`{overlay}`" in (EVENTING / "README.md").read_text()


@each_service
def test_the_platform_holds_tenants_off(service: Manifest) -> None:
    """Requests at a time, pods, processor and memory are bounded; no function has a public address."""
    assert service["metadata"]["labels"]["networking.knative.dev/visibility"] == "cluster-local"
    template = service["spec"]["template"]
    (container,) = template["spec"]["containers"]
    settings = from_environment({entry["name"]: entry["value"] for entry in container["env"]})
    assert 0 < template["spec"]["containerConcurrency"] < settings.threads
    scale = {name.rpartition("/")[2]: value for name, value in template["metadata"]["annotations"].items()}
    least = "0" if service["metadata"]["name"] == "dead-letter" else "1"
    assert (scale["min-scale"], int(scale["max-scale"]) > 0) == (least, True)
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("objects", [WHOLE, ONE_NAMESPACE], ids=["cluster", "one namespace"])
def test_only_knative_reaches_the_functions(objects: list[Manifest]) -> None:
    """The broker's namespace is let in, a tenant's is not; a team's own pods reach each other."""
    (policy,) = of_kind(objects, "NetworkPolicy")
    ((peer,),) = (rule["from"] for rule in policy["spec"]["ingress"])
    (expression,) = peer["namespaceSelector"]["matchExpressions"]
    assert {"knative-eventing", "knative-serving"} < set(expression["values"])
    assert TEAM not in expression["values"]
    if selector := policy["spec"]["podSelector"]:
        (expression,) = selector["matchExpressions"]
        services = {service["metadata"]["name"] for service in of_kind(objects, "Service")}
        assert services <= set(expression["values"])


def test_everything_of_muster_is_in_its_namespace() -> None:
    """An object without a namespace would land where kubectl happens to point."""
    for objects, namespace in ((WHOLE, "muster-system"), (ONE_NAMESPACE, TEAM)):
        inside = [manifest for manifest in objects if manifest["kind"] not in EVERYWHERE]
        assert {manifest["metadata"]["namespace"] for manifest in inside} == {namespace}
    assert "muster-system" not in str(ONE_NAMESPACE)


def test_functions_of_one_namespace_have_roles_in_it_and_sweep_it() -> None:
    """The rules are those of the overlay cluster; what is read of the whole cluster is two kinds."""
    everywhere = {role["metadata"]["name"]: role["rules"] for role in _roles(WHOLE)}
    here = {role["metadata"]["name"]: role["rules"] for role in of_kind(ONE_NAMESPACE, "Role")}
    assert here == {name: rules for name, rules in everywhere.items() if name != "muster-mark-runtime"}
    (role,) = of_kind(ONE_NAMESPACE, "ClusterRole")
    assert {name for rule in role["rules"] for name in rule["resources"]} == {
        "clustertrainingruntimes",
        "priorityclasses",
    }
    for service in of_kind(ONE_NAMESPACE, "Service"):
        (container,) = service["spec"]["template"]["spec"]["containers"]
        swept = {"name": "MUSTER_NAMESPACE", "value": TEAM} in container["env"]
        assert swept == (service["metadata"]["name"] != "dead-letter")
    for source in of_kind(ONE_NAMESPACE, "ApiServerSource"):
        assert "namespaceSelector" not in source["spec"]
        assert not any(one["kind"].startswith("Cluster") for one in source["spec"]["resources"])


def test_one_service_has_the_path_and_the_rights_of_each_step() -> None:
    """Nothing else differs from the overlay cluster."""
    kinds = {"ClusterRole", "Role", "ApiServerSource", "PingSource", "NetworkPolicy"}
    for kind in sorted(kinds | {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}):
        assert of_kind(ONE_SERVICE, kind) == of_kind(WHOLE, kind), kind
    (service,), (broker,) = of_kind(ONE_SERVICE, "Service"), of_kind(ONE_SERVICE, "Broker")
    (container,) = service["spec"]["template"]["spec"]["containers"]
    triggers = Wiring.from_manifests(ONE_SERVICE).triggers
    assert {trigger.subscriber for trigger in triggers} == {f"muster/{trigger.name}" for trigger in triggers}
    assert {trigger.delivery.dead_letter for trigger in triggers} == {"muster/dead-letter"}
    assert destination(broker["spec"]["delivery"]["deadLetterSink"]) == "muster/dead-letter"
    assert set(container["args"]) == {trigger.name for trigger in triggers} | {"dead-letter"}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        for theirs, ours in zip(of_kind(WHOLE, kind), of_kind(ONE_SERVICE, kind), strict=True):
            account = "muster-source" if "source" in theirs["metadata"]["name"] else "muster"
            assert (ours["roleRef"], ours["subjects"][0]["name"]) == (theirs["roleRef"], account)


def _roles(objects: list[Manifest]) -> list[Manifest]:
    roles = [*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")]
    return [role for role in roles if role["rules"]]
