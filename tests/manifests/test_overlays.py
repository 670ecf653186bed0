"""Overlays hold what their comments promise."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from muster.data import EVENTING
from muster.kustomize import Manifest, load, of_kind
from muster.objects import yaml_files
from muster.simulator.broker import Wiring
from muster.simulator.broker.delivery import destination
from tests.support.overlays import objects_of

ONE_NAMESPACE = objects_of("overlays/one-namespace")
INSIDE = objects_of("overlays/one-namespace/inside")
ONE_SERVICE = objects_of("overlays/one-service")
EXAMPLE = objects_of("overlays/example")
WHOLE = objects_of("overlays/cluster")
TEAM = "team-a"
OVERLAYS = sorted(path.name for path in (EVENTING / "overlays").iterdir() if path.is_dir())


def _with_component(overlay: Path, component: str, folder: Path) -> list[Manifest]:
    """Return the objects of a copy of an overlay that names a component."""
    copy = EVENTING / "overlays" / overlay.relative_to(EVENTING / "overlays")
    kustomization = yaml_files.load((copy / "kustomization.yaml").read_text())
    kustomization["resources"] = [str((copy / path).resolve()) for path in kustomization["resources"]]
    kustomization["components"] = [str(EVENTING / "components" / component)]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return load(folder)


def _named(objects: list[Manifest], kind: str) -> set[str]:
    return {manifest["metadata"]["name"] for manifest in of_kind(objects, kind)}


def _environments(objects: list[Manifest]) -> dict[str, list[dict[str, str]]]:
    """Return the variables of each Service's container, by name without prefix."""
    return {
        service["metadata"]["name"].removeprefix("muster-"): service["spec"]["template"]["spec"][
            "containers"
        ][0]["env"]
        for service in of_kind(objects, "Service")
    }


class TestOneNamespace:
    """Everything lives in the team's namespace, and ends there."""

    def test_nothing_inside_is_outside(self) -> None:
        """Each object is in the namespace, none names Muster's usual one, and none is of the cluster."""
        assert {manifest["metadata"]["namespace"] for manifest in INSIDE} == {TEAM}
        assert "muster-system" not in str(ONE_NAMESPACE)
        assert {manifest["kind"] for manifest in INSIDE}.isdisjoint(
            {"Namespace", "ClusterRole", "ClusterRoleBinding"}
        )

    def test_functions_keep_their_environment(self) -> None:
        """The namespace is added to the variables of the base, and replaces none."""
        before, after = _environments(WHOLE), _environments(INSIDE)
        for name in after.keys() - {"dead-letter"}:
            assert after[name] == [*before[name], {"name": "MUSTER_NAMESPACE", "value": TEAM}]
        assert after["dead-letter"] == before["dead-letter"]

    def test_the_objects_that_an_administrator_adds(self) -> None:
        """Admission policies with their bindings, and what has to be read of the whole cluster."""
        added = [manifest for manifest in ONE_NAMESPACE if manifest not in INSIDE]
        kinds = {
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ClusterRole",
            "ClusterRoleBinding",
        }
        assert {manifest["kind"] for manifest in added} == kinds
        (role,) = of_kind(added, "ClusterRole")
        assert role["rules"] == [
            {
                "apiGroups": ["trainer.kubeflow.org"],
                "resources": ["clustertrainingruntimes"],
                "verbs": ["get"],
            },
            {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["list"]},
        ]

    def test_policies_act_in_the_namespace_alone(self) -> None:
        """The policies are as everywhere; each binding is the team's own and names its namespace."""
        assert of_kind(ONE_NAMESPACE, "MutatingAdmissionPolicy") == of_kind(WHOLE, "MutatingAdmissionPolicy")
        bindings = of_kind(ONE_NAMESPACE, "MutatingAdmissionPolicyBinding")
        for binding in bindings:
            policy = binding["spec"]["policyName"]
            assert binding["metadata"]["name"] == f"{policy}-{TEAM}"
            assert binding["spec"]["matchResources"] == {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": TEAM}}
            }
        assert len(bindings) == len(of_kind(WHOLE, "MutatingAdmissionPolicy"))

    def test_sources_watch_their_own_namespace(self) -> None:
        """Without a selector, and no kind that is in no namespace."""
        sources = of_kind(INSIDE, "ApiServerSource")
        assert _named(INSIDE, "ApiServerSource") == _named(WHOLE, "ApiServerSource")
        assert not any("namespaceSelector" in source["spec"] for source in sources)
        watched = {resource["kind"] for source in sources for resource in source["spec"]["resources"]}
        assert "TrainJob" in watched
        assert not any(kind.startswith("Cluster") for kind in watched)

    def test_roles_grant_the_rules_of_the_cluster_roles(self) -> None:
        """The same rules, bound in the namespace to the same accounts."""
        everywhere = {role["metadata"]["name"]: role["rules"] for role in of_kind(WHOLE, "ClusterRole")}
        here = {role["metadata"]["name"]: role["rules"] for role in of_kind(INSIDE, "Role")}
        assert here.pop("muster-dead-letter") == of_kind(WHOLE, "Role")[0]["rules"]
        assert here == {name: rules for name, rules in everywhere.items() if name != "muster-mark-runtime"}
        for binding in of_kind(INSIDE, "RoleBinding"):
            assert binding["roleRef"]["kind"] == "Role"
            assert [subject["namespace"] for subject in binding["subjects"]] == [TEAM]

    def test_every_function_sweeps_its_namespace(self) -> None:
        """A list of all namespaces would be refused, and every sweep would fail."""
        functions = [
            service for service in of_kind(INSIDE, "Service") if service["metadata"]["name"] != "dead-letter"
        ]
        assert {manifest["metadata"]["name"] for manifest in functions} == {
            trigger["metadata"]["name"] for trigger in of_kind(INSIDE, "Trigger")
        }
        for function in functions:
            (container,) = function["spec"]["template"]["spec"]["containers"]
            assert {"name": "MUSTER_NAMESPACE", "value": TEAM} in container["env"]


class TestOneService:
    """All functions in one Service; what each of them does is as in the overlay cluster."""

    def test_nothing_else_changes(self) -> None:
        """Roles, sources, admission policies and filters are those of the overlay cluster."""
        kinds = {"ClusterRole", "Role", "ApiServerSource", "PingSource", "NetworkPolicy"}
        kinds |= {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
        for kind in sorted(kinds):
            assert of_kind(ONE_SERVICE, kind) == of_kind(WHOLE, kind), kind
        passes = {
            trigger["metadata"]["name"]: trigger["spec"]["filters"] for trigger in of_kind(WHOLE, "Trigger")
        }
        assert passes == {
            trigger["metadata"]["name"]: trigger["spec"]["filters"]
            for trigger in of_kind(ONE_SERVICE, "Trigger")
        }

    def test_each_trigger_names_the_path_of_its_step(self) -> None:
        """The path is the function's name among the arguments of the container; dead letters have theirs."""
        (service,) = of_kind(ONE_SERVICE, "Service")
        (container,) = service["spec"]["template"]["spec"]["containers"]
        triggers = Wiring.from_manifests(ONE_SERVICE).triggers
        assert {trigger.subscriber for trigger in triggers} == {
            f"muster/{trigger.name}" for trigger in triggers
        }
        assert {trigger.delivery.dead_letter for trigger in triggers} == {"muster/dead-letter"}
        assert set(container["args"]) == {trigger.name for trigger in triggers} | {"dead-letter"}
        (broker,) = of_kind(ONE_SERVICE, "Broker")
        assert destination(broker["spec"]["delivery"]["deadLetterSink"]) == "muster/dead-letter"

    def test_the_one_account_has_every_role(self) -> None:
        """Each binding of the overlay cluster is there, for the shared account."""
        for kind in ("ClusterRoleBinding", "RoleBinding"):
            bindings = {one["metadata"]["name"]: one for one in of_kind(ONE_SERVICE, kind)}
            for theirs in of_kind(WHOLE, kind):
                ours = bindings.pop(theirs["metadata"]["name"])
                (subject,) = ours["subjects"]
                account = "muster-source" if "source" in theirs["metadata"]["name"] else "muster"
                assert (ours["roleRef"], subject["name"]) == (theirs["roleRef"], account)
            assert bindings == {}

    def test_its_pod_is_as_careful_as_the_others(self) -> None:
        """Probes, security context and environment of the functions' own pods, and at most one pod."""
        (service,) = of_kind(ONE_SERVICE, "Service")
        usual = of_kind(WHOLE, "Service")[0]
        (ours,), (theirs,) = (one["spec"]["template"]["spec"]["containers"] for one in (service, usual))
        for field in ("image", "livenessProbe", "ports", "readinessProbe", "securityContext"):
            assert ours[field] == theirs[field]
        assert [entry for entry in theirs["env"] if entry not in ours["env"]] == []
        annotations = service["spec"]["template"]["metadata"]["annotations"]
        assert annotations["autoscaling.knative.dev/max-scale"] == "1"


class TestExample:
    """The overlay that a team copies."""

    def test_a_step_can_be_left_out_completely(self) -> None:
        """Nothing of emit-conditions is left, and nothing else is missing."""
        left_out = [manifest for manifest in WHOLE if "emit-conditions" in manifest["metadata"]["name"]]
        assert {manifest["kind"] for manifest in left_out} == {
            "Trigger",
            "Service",
            "ServiceAccount",
            "ClusterRole",
            "ClusterRoleBinding",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        }
        assert "emit-conditions" not in str(EXAMPLE)
        assert len(EXAMPLE) == len(WHOLE) - len(left_out)

    def test_deliveries_are_the_teams_own(self) -> None:
        """The broker's is for the team's triggers; a trigger's own replaces it."""
        (broker,) = of_kind(EXAMPLE, "Broker")
        assert broker["spec"]["delivery"]["retry"] == 8
        retries = {
            trigger.name: trigger.delivery.retry for trigger in Wiring.from_manifests(EXAMPLE).triggers
        }
        assert retries.pop("patch-pods") == 3
        assert set(retries.values()) == {5}

    def test_images_come_from_the_teams_registry(self) -> None:
        """Every function's; a name that is misspelt would be left as it is."""
        images = {
            service["spec"]["template"]["spec"]["containers"][0]["image"]
            for service in of_kind(EXAMPLE, "Service")
        }
        assert images
        assert {image for image in images if not image.startswith("registry.example.com/muster/")} == set()


class TestSecurity:
    """Who may talk to Muster."""

    @pytest.mark.parametrize("overlay", OVERLAYS)
    def test_no_overlay_has_an_event_policy(self, overlay: str) -> None:
        """Knative refuses it unless its flag authentication-oidc is enabled."""
        assert of_kind(load(EVENTING / "overlays" / overlay), "EventPolicy") == []

    @pytest.mark.parametrize("folder", ["overlays/cluster", "overlays/one-namespace/inside"])
    def test_with_the_component_only_its_own_namespace_sends_to_the_broker(
        self, tmp_path: Path, folder: str
    ) -> None:
        """The EventPolicy guards the broker that the sources feed, and names the namespace it stands in."""
        objects = _with_component(EVENTING / folder, "event-policy", tmp_path)
        (policy,), (broker,) = of_kind(objects, "EventPolicy"), of_kind(objects, "Broker")
        namespace = policy["metadata"]["namespace"]
        assert namespace == broker["metadata"]["namespace"]
        assert policy["spec"]["to"] == [
            {
                "ref": {
                    "apiVersion": "eventing.knative.dev/v1",
                    "kind": "Broker",
                    "name": broker["metadata"]["name"],
                }
            }
        ]
        assert policy["spec"]["from"] == [{"sub": f"system:serviceaccount:{namespace}:*"}]

    @pytest.mark.parametrize("objects", [WHOLE, ONE_NAMESPACE], ids=["cluster", "one namespace"])
    def test_only_knative_reaches_the_pods(self, objects: list[Manifest]) -> None:
        """All pods of the namespace are covered; the broker's namespace is let in, a tenant's is not."""
        (policy,) = of_kind(objects, "NetworkPolicy")
        homes = {service["metadata"]["namespace"] for service in of_kind(objects, "Service")}
        assert {policy["metadata"]["namespace"]} == homes
        assert policy["spec"]["policyTypes"] == ["Ingress"]
        ((peer,),) = (rule["from"] for rule in policy["spec"]["ingress"])
        (expression,) = peer["namespaceSelector"]["matchExpressions"]
        assert {"knative-eventing", "knative-serving"} < set(expression["values"])
        assert TEAM not in expression["values"]

    def test_the_network_policy_closes_all_pods_of_musters_own_namespace(self) -> None:
        """The functions, the dead letter, the adapters of the sources."""
        (policy,) = of_kind(WHOLE, "NetworkPolicy")
        assert policy["spec"]["podSelector"] == {}

    def test_in_a_teams_namespace_the_network_policy_leaves_the_teams_pods_alone(self) -> None:
        """It closes the functions, by the label of their Services; workers of a gang reach each other."""
        (policy,) = of_kind(ONE_NAMESPACE, "NetworkPolicy")
        (expression,) = policy["spec"]["podSelector"]["matchExpressions"]
        assert expression["key"] == "serving.knative.dev/service"
        assert expression["operator"] == "In"
        assert _named(ONE_NAMESPACE, "Service") <= set(expression["values"])

    def test_with_the_component_sources_watch_labelled_namespaces(self, tmp_path: Path) -> None:
        """Those of Jobs that become gangs; nothing else changes."""
        objects = _with_component(EVENTING / "overlays" / "cluster", "labelled-namespaces", tmp_path)
        selectors = [
            source["spec"].pop("namespaceSelector") for source in of_kind(objects, "ApiServerSource")
        ]
        assert selectors == [{"matchLabels": {"muster.dev/gang-jobs": "enabled"}}] * 4
        unchanged = [manifest for manifest in WHOLE if manifest["kind"] != "ApiServerSource"]
        assert [manifest for manifest in objects if manifest["kind"] != "ApiServerSource"] == unchanged

    @pytest.mark.parametrize(
        "service",
        [*of_kind(WHOLE, "Service"), *of_kind(ONE_SERVICE, "Service")],
        ids=lambda manifest: str(manifest["metadata"]["name"]),
    )
    def test_services_are_cluster_local(self, service: Manifest) -> None:
        """No function has a public address."""
        assert service["metadata"]["labels"]["networking.knative.dev/visibility"] == "cluster-local"

    @pytest.mark.parametrize(
        "service",
        [*of_kind(WHOLE, "Service"), *of_kind(ONE_SERVICE, "Service")],
        ids=lambda manifest: str(manifest["metadata"]["name"]),
    )
    def test_a_slow_answer_to_a_liveness_probe_is_no_failure(self, service: Manifest) -> None:
        """A list of dense objects keeps a function from answering for up to three seconds."""
        (container,) = service["spec"]["template"]["spec"]["containers"]
        assert container["livenessProbe"]["timeoutSeconds"] == 5
