"""Every function hears what it should and nothing else, and whatever an overlay names is installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from muster.data import EVENTING, FUNCTIONS
from muster.objects import resources
from muster.policy.group_labels import GATED, MANAGED_BY, MUSTER
from muster.simulator.broker import Trigger, Wiring
from muster.simulator.overlays import Manifest, of_kind
from muster.simulator.source import Mode, SourceSpec
from tests.manifests.built import OVERLAYS
from tests.support.overlays import objects_in, objects_of

RECORDED = Path(__file__).parents[1] / "support" / "recorded"
OBJECTS = [*objects_of("cluster"), *objects_in("components/restart-gang")]
"""With the only step that is a component."""
TRIGGERS = {trigger.name: trigger for trigger in Wiring.from_manifests(OBJECTS).triggers}
SOURCES = of_kind(OBJECTS, "ApiServerSource")
HEARS = {
    "mark-runtime": {
        "TrainingRuntime add",
        "TrainingRuntime update",
        "ClusterTrainingRuntime add",
        "ClusterTrainingRuntime update",
    },
    "create-workload": {"JobSet add", "Job add"},
    "create-pod-groups": {"Workload add"},
    "gather-pods": set(),
    "patch-pods": {"PodGroup add", "Pod add"},
    "resize-gang": {"Job update", "JobSet update"},
    "emit-conditions": {"PodGroup update"},
    "restart-gang": set(),
}
"""In the words of the recorded events."""

Name = tuple[str, str, str]
"""Kind, namespace and name."""
each_overlay = pytest.mark.parametrize("overlay", OVERLAYS)


def test_every_trigger_names_an_existing_function() -> None:
    """And every function has a trigger, and a Service."""
    functions = {path.parents[1].name.replace("_", "-") for path in FUNCTIONS.glob("*/function/step.py")}
    assert set(TRIGGERS) == set(HEARS) == functions
    assert {trigger.subscriber for trigger in TRIGGERS.values()} == functions
    services = {service["metadata"]["name"] for service in of_kind(OBJECTS, "Service")}
    assert services == functions | {trigger.delivery.dead_letter for trigger in TRIGGERS.values()}


@pytest.mark.parametrize("name", HEARS)
@pytest.mark.parametrize("mode", ["resource", "reference"])
def test_a_function_hears_these_recorded_events_and_no_others(name: str, mode: str) -> None:
    """Out of one event of each kind and type that the real adapter sent."""
    passes = TRIGGERS[name].passes
    lines = (RECORDED / f"one-of-each.{mode}.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    heard = {
        f"{event['kind']} {event['type'].rpartition('.')[2]}"
        for event in events
        if passes(_attributes(event))
    }
    assert heard == HEARS[name]


@pytest.mark.parametrize("name", HEARS)
def test_a_function_hears_sweeps_and_neither_its_replies_nor_kinds_of_others(name: str) -> None:
    """A broker may be shared: a Workload of Kueue's is none of Muster's."""
    passes = TRIGGERS[name].passes
    for sweep in ("dev.muster.sweep", "dev.knative.sources.ping"):
        assert passes({"specversion": "1.0", "id": "1", "source": "/any", "type": sweep})
    assert not passes({"type": f"dev.muster.{name}.created", "kind": "Job", "apiversion": "batch/v1"})
    others = [("kueue.x-k8s.io/v1beta1", "Workload"), ("batch.volcano.sh/v1alpha1", "Job")]
    for version, kind in [*others, ("scheduling.x-k8s.io/v1alpha1", "PodGroup"), ("v1", "Event")]:
        event = {"type": "dev.knative.apiserver.resource.add", "apiversion": version, "kind": kind}
        assert not passes(event), version


def test_the_replies_by_which_one_step_starts_another() -> None:
    """Other replies start none of Muster's."""
    types = [path.stem for path in (EVENTING / "schemas" / "replies").glob("*.json")]
    heard = {(name, type_) for name in HEARS for type_ in types if TRIGGERS[name].passes({"type": type_})}
    assert heard == {
        ("gather-pods", "dev.muster.patch_pods.added"),
        ("create-pod-groups", "dev.muster.create_workload.created"),
        ("create-pod-groups", "dev.muster.resize_gang.missing"),
        ("emit-conditions", "dev.muster.resize_gang.look"),
        ("patch-pods", "dev.muster.gather_pods.gathered"),
        ("patch-pods", "dev.muster.resize_gang.look"),
        ("patch-pods", "dev.muster.resize_gang.resized"),
    }


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1", "v1"])
def test_groups_are_heard_in_any_version(version: str) -> None:
    """1.36 and 1.37 serve different versions, and the triggers are the same."""
    event = {"type": "dev.knative.apiserver.ref.add", "apiversion": f"scheduling.k8s.io/{version}"}
    assert TRIGGERS["create-pod-groups"].passes({**event, "kind": "Workload"})
    assert TRIGGERS["patch-pods"].passes({**event, "kind": "PodGroup"})


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=lambda trigger: str(trigger.name))
def test_deliveries_retry_for_seconds_and_then_become_dead_letters(trigger: Trigger) -> None:
    """All retries are over before the next sweep."""
    delivery = trigger.delivery
    waits = [delivery.wait_before_retry(number) for number in range(delivery.retry)]
    assert 2 < sum(waits) < 30
    assert delivery.timeout is not None
    assert delivery.timeout < 60
    assert delivery.dead_letter == "dead-letter"


@pytest.mark.parametrize(
    ("overlay", "groups"),
    [
        ("cluster", {"v1beta1 Workload", "v1beta1 PodGroup"}),
        ("kubernetes-1.36", {"v1alpha2 Workload", "v1alpha2 PodGroup"}),
        ("composite-pod-groups", {"v1beta1 Workload", "v1beta1 PodGroup", "v1alpha3 CompositePodGroup"}),
    ],
)
def test_the_kinds_watched(overlay: str, groups: set[str]) -> None:
    """All kinds of owners, and groups in the version that the cluster serves: others restart a source."""
    watched = [kind for one in of_kind(objects_of(overlay), "ApiServerSource") for kind in _resources(one)]
    owners = (resources.TRAINJOBS, resources.JOBSETS, resources.JOBS)
    runtimes = (resources.TRAINING_RUNTIMES, resources.CLUSTER_TRAINING_RUNTIMES)
    expected = {(one.api_version, one.kind) for one in (*owners, *runtimes, resources.PODS)}
    expected |= {(f"scheduling.k8s.io/{version}", kind) for version, kind in map(str.split, groups)}
    assert {(kind["apiVersion"], kind["kind"]) for kind in watched} == expected


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: str(source["metadata"]["name"]))
def test_a_source_sends_whole_objects_and_watches_one_optional_api(source: Manifest) -> None:
    """An API that is not served ends its process; only gated pods and users' own Workloads are sent."""
    spec = SourceSpec.from_manifest(source)
    assert (spec.mode, spec.namespaces) == (Mode.RESOURCE, "")
    selectors = {"Pod": GATED, "Workload": f"{MANAGED_BY} notin ({MUSTER})"}
    assert all(kind.selector == selectors.get(kind.resource.kind, "") for kind in spec.kinds)
    versions = {kind["apiVersion"] for kind in _resources(source)}
    assert len(versions) == 1 or versions <= {"v1", "batch/v1"}


@each_overlay
def test_every_named_object_is_installed_and_every_installed_object_is_named(overlay: str) -> None:
    """Services of triggers, their broker, dead letter sinks, accounts, roles and policies of bindings."""
    objects = objects_of(overlay)
    named = {name for obj in objects for name in _named_by(obj)}
    there = {_place(obj["kind"], obj["metadata"]) for obj in objects}
    kinds = {"Broker", "Service", "ServiceAccount", "Role", "ClusterRole", "MutatingAdmissionPolicy"}
    assert named - there == set()
    assert {name for name in there if name[0] in {*kinds, "ValidatingAdmissionPolicy"}} - named == set()
    assert kinds - {"Role", "ClusterRole"} < {kind for kind, _, _ in named}


def _attributes(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "data"}


def _resources(source: Manifest) -> list[dict[str, Any]]:
    watched: list[dict[str, Any]] = source["spec"]["resources"]
    return watched


def _named_by(manifest: Manifest) -> Iterator[Name]:
    namespace, spec = manifest["metadata"].get("namespace", ""), manifest.get("spec", {})
    match manifest["kind"]:
        case "Trigger":
            yield "Broker", namespace, spec["broker"]
            yield _reference(spec["subscriber"], namespace)
            yield _reference(spec["delivery"]["deadLetterSink"], namespace)
        case "Broker":
            yield _reference(spec["delivery"]["deadLetterSink"], namespace)
        case "PingSource":
            yield _reference(spec["sink"], namespace)
        case "ApiServerSource":
            yield _reference(spec["sink"], namespace)
            yield "ServiceAccount", namespace, spec["serviceAccountName"]
        case "Service":
            yield "ServiceAccount", namespace, spec["template"]["spec"]["serviceAccountName"]
        case "RoleBinding" | "ClusterRoleBinding":
            role = manifest["roleRef"]
            yield role["kind"], namespace if role["kind"] == "Role" else "", role["name"]
            for subject in manifest["subjects"]:
                if subject["kind"] == "ServiceAccount":
                    yield _place("ServiceAccount", subject)
        case "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding":
            yield manifest["kind"].removesuffix("Binding"), "", spec["policyName"]


def _reference(destination: dict[str, Any], namespace: str) -> Name:
    ref = destination["ref"]
    return ref["kind"], ref.get("namespace", namespace), ref["name"]


def _place(kind: str, metadata: dict[str, Any]) -> Name:
    return kind, metadata.get("namespace", ""), metadata["name"]
