"""Every function hears what it should, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.data import EVENTING
from muster.kustomize import of_kind
from muster.simulator.broker import Trigger, Wiring
from tests.support.overlays import objects_of
from tests.support.recorded_events import recorded, title

OBJECTS = objects_of("overlays/cluster")
WIRING = Wiring.from_manifests(OBJECTS)
TRIGGERS = {trigger.name: trigger for trigger in WIRING.triggers}
FUNCTIONS = sorted(
    folder.name.replace("_", "-")
    for folder in (EVENTING.parent / "functions").iterdir()
    if (folder / "function" / "step.py").is_file()
)
SWEEPS = {"dev.muster.sweep", "dev.knative.sources.ping"}

HEARS = {
    "mark-runtime": {
        "TrainingRuntime add",
        "TrainingRuntime update",
        "ClusterTrainingRuntime add",
        "ClusterTrainingRuntime update",
    },
    "create-workload": {"TrainJob add", "TrainJob update", "JobSet add", "Job add"},
    "create-pod-groups": {"Workload add", "JobSet add", "Job add"},
    "patch-pods": {"PodGroup add", "PodGroup update", "Pod add"},
    "resize-gang": {"Job update", "JobSet update"},
    "emit-conditions": {"PodGroup add", "PodGroup update", "Job update", "JobSet update"},
}
"""Design section 6, in the words of the recorded events."""


def test_every_function_has_a_trigger_and_every_trigger_a_function() -> None:
    """No function waits for events that never come, and no event goes to a function that is not there."""
    assert FUNCTIONS
    assert sorted(TRIGGERS) == sorted(HEARS) == FUNCTIONS
    assert {trigger.subscriber for trigger in TRIGGERS.values()} == set(FUNCTIONS)


def test_every_subscriber_and_dead_letter_sink_is_a_service() -> None:
    """Whatever a trigger names is installed with it."""
    services = {service["metadata"]["name"] for service in of_kind(OBJECTS, "Service")}
    named = {
        name for trigger in TRIGGERS.values() for name in (trigger.subscriber, trigger.delivery.dead_letter)
    }
    assert named <= services


@pytest.mark.parametrize("name", HEARS)
@pytest.mark.parametrize("mode", ["resource", "reference"])
def test_a_function_hears_these_recorded_events_and_no_others(name: str, mode: str) -> None:
    """In both modes, out of one event of each kind and type that the real adapter sent."""
    heard = {title(event) for event in recorded(mode) if _passes(TRIGGERS[name], event)}
    assert heard == HEARS[name]


@pytest.mark.parametrize("name", HEARS)
@pytest.mark.parametrize("sweep", sorted(SWEEPS))
def test_every_function_hears_sweeps(name: str, sweep: str) -> None:
    """A sweep has no kind and no object; it comes from a timer or from a person."""
    assert TRIGGERS[name].passes({"specversion": "1.0", "id": "1", "source": "/any", "type": sweep})


@pytest.mark.parametrize("name", HEARS)
@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("kueue.x-k8s.io/v1beta1", "Workload", id="Kueue's Workload"),
        pytest.param("batch.volcano.sh/v1alpha1", "Job", id="Volcano's Job"),
        pytest.param("scheduling.volcano.sh/v1beta1", "PodGroup", id="Volcano's PodGroup"),
        pytest.param("scheduling.x-k8s.io/v1alpha1", "PodGroup", id="coscheduling's PodGroup"),
        pytest.param("example.com/v1", "TrainJob", id="a TrainJob of another API group"),
        pytest.param("example.com/v1", "JobSet", id="a JobSet of another API group"),
        pytest.param("v1", "Event", id="an Event"),
    ],
)
def test_kinds_of_other_projects_are_not_heard(name: str, api_version: str, kind: str) -> None:
    """On a broker that others use as well, a kind of the same name is not Muster's."""
    for verb in ("add", "update", "delete"):
        event = {"type": f"dev.knative.apiserver.resource.{verb}", "apiversion": api_version, "kind": kind}
        assert not TRIGGERS[name].passes(event)


@pytest.mark.parametrize("name", HEARS)
def test_no_function_hears_its_own_replies(name: str) -> None:
    """A reply that passes the trigger of the function that gave it goes round until the broker drops it."""
    for what in ("workload.created", "pods.released", "conditions.written"):
        assert not TRIGGERS[name].passes(
            {"type": f"dev.muster.{name}.{what}", "kind": "Job", "apiversion": "batch/v1"}
        )


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1", "v1"])
def test_groups_are_heard_in_any_version(version: str) -> None:
    """1.36 and 1.37 serve different versions, and the triggers are the same."""
    event = {"type": "dev.knative.apiserver.ref.add", "apiversion": f"scheduling.k8s.io/{version}"}
    assert TRIGGERS["create-pod-groups"].passes({**event, "kind": "Workload"})
    assert TRIGGERS["patch-pods"].passes({**event, "kind": "PodGroup"})


def test_patch_pods_gets_events_of_replaced_composites() -> None:
    """Its number is right then; of no other change of it, and no other function."""
    kind = {"apiversion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup"}
    heard = {
        (name, verb)
        for name in HEARS
        for verb in ("add", "update", "delete")
        if TRIGGERS[name].passes({"type": f"dev.knative.apiserver.resource.{verb}", **kind})
    }
    assert heard == {("patch-pods", "add")}


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=lambda trigger: str(trigger.name))
def test_deliveries_retry_for_seconds_and_then_become_dead_letters(trigger: Trigger) -> None:
    """Some retries, all of them over before the next sweep; a time-out; a dead letter sink."""
    delivery = trigger.delivery
    waits = [delivery.wait_before_retry(number) for number in range(delivery.retry)]
    assert delivery.policy == "exponential"
    assert 2 < sum(waits) < 30
    assert delivery.timeout is not None
    assert delivery.timeout < 60
    assert delivery.dead_letter == "dead-letter"


def test_one_file_per_trigger_named_after_its_function() -> None:
    """What a function hears is found by its name."""
    files = {path.stem for path in (EVENTING / "triggers").glob("*.yaml")} - {"kustomization"}
    assert files == set(FUNCTIONS)
    assert all(Path(EVENTING / "base" / "functions" / f"{name}.yaml").exists() for name in FUNCTIONS)


def _passes(trigger: Trigger, event: dict[str, Any]) -> bool:
    return trigger.passes({name: value for name, value in event.items() if name != "data"})
