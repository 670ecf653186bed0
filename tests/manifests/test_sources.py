"""The sources send what the triggers wait for, and no source can take another down."""

from __future__ import annotations

import pytest

from muster.data import EVENTING
from muster.kustomize import Manifest, load, of_kind
from muster.objects import resources
from muster.policy.group_labels import GATED
from muster.simulator.broker import Wiring
from muster.simulator.source import Mode, SourceSpec
from tests.support.overlays import objects_of

OBJECTS = objects_of("overlays/cluster")
SOURCES = of_kind(OBJECTS, "ApiServerSource")


def _kinds(manifests: list[Manifest]) -> set[tuple[str, str]]:
    return {
        (resource["apiVersion"], resource["kind"])
        for source in of_kind(manifests, "ApiServerSource")
        for resource in source["spec"]["resources"]
    }


def test_the_kinds_watched() -> None:
    """All that the design names, in the versions of Kubernetes 1.37, but for composites."""
    watched = (
        resources.TRAINJOBS,
        resources.TRAINING_RUNTIMES,
        resources.CLUSTER_TRAINING_RUNTIMES,
        resources.JOBSETS,
        resources.JOBS,
        resources.PODS,
        resources.WORKLOADS,
        resources.POD_GROUPS,
    )
    assert _kinds(OBJECTS) == {(resource.api_version, resource.kind) for resource in watched}


def test_composites_come_with_their_overlay() -> None:
    """v1alpha3 is served only where the alpha gate is on; the overlay adds one source and nothing else."""
    overlay = load(EVENTING / "overlays" / "composite-pod-groups")
    composites = resources.COMPOSITE_POD_GROUPS
    assert _kinds(overlay) - _kinds(OBJECTS) == {(composites.api_version, composites.kind)}
    assert len(overlay) == len(OBJECTS) + 1


def test_kubernetes_1_36_has_its_own_version_of_groups() -> None:
    """v1alpha2 is what it serves; the overlay changes that and nothing else."""
    overlay = load(EVENTING / "overlays" / "kubernetes-1.36")
    changed = [one for one, before in zip(overlay, OBJECTS, strict=True) if one != before]
    assert [manifest["metadata"]["name"] for manifest in changed] == ["groups"]
    assert _kinds(changed) == {
        ("scheduling.k8s.io/v1alpha2", "Workload"),
        ("scheduling.k8s.io/v1alpha2", "PodGroup"),
    }


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source["metadata"]["name"]))
def test_a_source_watches_one_optional_api_at_most(source: Manifest) -> None:
    """An API that is not served ends its source's process, so it shares one with nothing that could go on."""
    versions = {resource["apiVersion"] for resource in source["spec"]["resources"]}
    assert len(versions) == 1 or versions <= {"v1", "batch/v1"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source["metadata"]["name"]))
def test_a_source_sends_whole_objects_of_every_namespace_to_the_broker(source: Manifest) -> None:
    """Mode Resource, an empty namespace selector, and the broker that the triggers hang on."""
    spec = SourceSpec.from_manifest(source)
    assert (spec.mode, spec.namespaces) == (Mode.RESOURCE, "")
    assert source["spec"]["sink"]["ref"] | {"apiVersion": "", "kind": ""} == {
        "apiVersion": "",
        "kind": "",
        "name": "muster",
        "namespace": "muster-system",
    }


def test_only_gated_pods_are_sent() -> None:
    """All pods of a cluster, or the updates of pods without a gate, would be most of its events."""
    specs = [SourceSpec.from_manifest(source) for source in SOURCES]
    selectors = {kind.resource.kind: kind.selector for spec in specs for kind in spec.kinds}
    assert selectors.pop("Pod") == GATED
    assert set(selectors.values()) == {""}


def test_a_sweep_comes_every_minute() -> None:
    """One timer, to the same broker."""
    (ping,) = Wiring.from_manifests(OBJECTS).pings
    (manifest,) = of_kind(OBJECTS, "PingSource")
    assert manifest["spec"]["schedule"] == "* * * * *"
    assert ping.event()["type"] == "dev.knative.sources.ping"


def test_functions_are_private_and_always_there() -> None:
    """Not on the ingress; one instance kept, because a cold start outlasts the source's patience."""
    for service in of_kind(OBJECTS, "Service"):
        labels, template = service["metadata"]["labels"], service["spec"]["template"]
        assert labels["networking.knative.dev/visibility"] == "cluster-local"
        if service["metadata"]["name"] != "dead-letter":
            assert template["metadata"]["annotations"]["autoscaling.knative.dev/min-scale"] == "1"


def test_everything_of_muster_is_in_its_namespace() -> None:
    """Or has none: an object without a namespace would land where kubectl happens to point."""
    spaceless = {
        "Namespace",
        "ClusterRole",
        "ClusterRoleBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    for obj in OBJECTS:
        expected = None if obj["kind"] in spaceless else "muster-system"
        assert obj["metadata"].get("namespace") == expected, obj["metadata"]["name"]
