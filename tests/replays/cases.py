"""Which recorded events become golden cases: an event, and the cluster it is planned in.

The table is read by `python -m tests.replays.update --inputs` alone. The tests read the folders, so a case
written by hand counts as much as a recorded one.
"""

from __future__ import annotations

from dataclasses import dataclass

SWEEP = "sweep"


@dataclass(frozen=True)
class Chosen:
    """One case.

    Attributes:
        says: what holds, as a sentence; the folder is named after it.
        story: the recording.
        moment: the cluster as it was then.
        what: kind and what happened, `PodGroup update`, or `sweep`.
        number: which of those events, from 1.
        mode: resource or reference.
    """

    says: str
    story: str
    moment: str
    what: str
    number: int = 1
    mode: str = "resource"


_1, _2, _4, _5 = "1-torch", "2-torchtune", "4-job-scaled", "5-does-not-fit"
_7 = "7-runtime-annotated"
_BORN, _MADE, _GROUPED = "before create_workload", "before create_pod_groups", "before patch_pods"

CHOSEN: dict[str, tuple[Chosen, ...]] = {
    "mark_runtime": (
        Chosen("a runtime without a policy is left", _7, "before annotation", "ClusterTrainingRuntime add"),
        Chosen(
            "a runtime with a policy is marked", _7, "before mark_runtime", "ClusterTrainingRuntime update"
        ),
        Chosen(
            "a runtime known by name alone is marked",
            _7,
            "before mark_runtime",
            "ClusterTrainingRuntime update",
            mode="reference",
        ),
        Chosen("a runtime that is marked is left", _7, "marked", "ClusterTrainingRuntime update", 2),
        Chosen(
            "a changed policy of the same marks leaves the runtime",
            _7,
            "annotation changed",
            "ClusterTrainingRuntime update",
            3,
        ),
        Chosen(
            "a runtime with a KAI queue hands its pods to KAI",
            _7,
            "namespaced runtime annotated",
            "TrainingRuntime update",
        ),
        Chosen("a runtime that is gone is left", _7, "deleted", "ClusterTrainingRuntime update"),
        Chosen("a sweep marks the runtimes with a policy", _7, "before mark_runtime", SWEEP),
    ),
    "create_workload": (
        Chosen("a TrainJob gets a Workload", _1, _BORN, "TrainJob add"),
        Chosen("a TrainJob known by name alone gets a Workload", _1, _BORN, "TrainJob add", mode="reference"),
        Chosen("the JobSet of a TrainJob brings the Workload of the TrainJob", _1, _BORN, "JobSet add"),
        Chosen("the Job of a JobSet is not an owner", _1, _BORN, "Job add"),
        Chosen("a TrainJob that has its Workload is left", _1, _MADE, "TrainJob update", 2),
        Chosen("a TrainJob that is complete is left", _1, "complete", "TrainJob update", 5),
        Chosen("a TrainJob that is gone is left", _1, "deleted", "TrainJob add"),
        Chosen("initializers are basic and the trainer is a gang", _2, _BORN, "JobSet add"),
        Chosen("an Indexed Job gets a Workload named as the Job controller names it", _4, _BORN, "Job add"),
        Chosen("a Job that does not fit gets its Workload all the same", _5, _BORN, "Job add"),
        Chosen("a sweep finds the TrainJob whose event was lost", _1, _BORN, SWEEP),
        Chosen("a sweep leaves a Workload that is in use", _4, "running", SWEEP),
    ),
    "create_pod_groups": (
        Chosen("a Workload of one template becomes one PodGroup", _1, _MADE, "Workload add"),
        Chosen(
            "a Workload known by name alone becomes a PodGroup", _1, _MADE, "Workload add", mode="reference"
        ),
        Chosen("a Workload of three templates becomes three PodGroups", _2, _MADE, "Workload add"),
        Chosen("the PodGroup of a Job is named after the Job and its UID", _4, _MADE, "Workload add"),
        Chosen("a PodGroup is made although there is no room for it", _5, _MADE, "Workload add"),
        Chosen("a JobSet whose Workload was there first gets its PodGroup", _1, _MADE, "JobSet add"),
        Chosen("a JobSet without a Workload waits for it", _1, _BORN, "JobSet add"),
        Chosen("PodGroups that exist are left", _2, _GROUPED + " (initializers)", "Workload add"),
        Chosen("a Workload that is gone is left", _1, "deleted", "Workload add"),
        Chosen("a changed Workload is not for this step", _4, "running with 6", "Workload update"),
        Chosen("a sweep makes the PodGroups that are missing", _2, _MADE, SWEEP),
    ),
    "patch_pods": (
        Chosen("a new PodGroup lets its three pods go", _1, _GROUPED, "PodGroup add"),
        Chosen(
            "a PodGroup known by name alone lets its pods go", _1, _GROUPED, "PodGroup add", mode="reference"
        ),
        Chosen("a pod waits for its PodGroup", _1, _MADE, "Pod add"),
        Chosen("one pod brings the gates of its whole group down", _1, _GROUPED, "Pod add", 2),
        Chosen("the pod of an initializer goes alone", _2, _GROUPED + " (initializers)", "PodGroup add", 2),
        Chosen(
            "the PodGroup of the trainer waits for its pods",
            _2,
            _GROUPED + " (initializers)",
            "PodGroup add",
            3,
        ),
        Chosen("the pods of the trainer go when they come", _2, _GROUPED + " (trainer)", "Pod add", 4),
        Chosen("the new pods of a Job that grew go", _4, "before patch_pods (scaled to 6)", "Pod add", 5),
        Chosen("a placed PodGroup has no gate to lift", _4, "running", "PodGroup update"),
        Chosen("a pod of a finished Job is left", _5, "complete", "Pod add"),
        Chosen("a sweep lifts the gates of all groups", _2, _GROUPED + " (initializers)", SWEEP),
    ),
    "resize_gang": (
        Chosen(
            "a Job that grew keeps its minCount until new pods run",
            _4,
            "before resize_gang to 6",
            "Job update",
            3,
        ),
        Chosen(
            "a Job that shrank gets its minCount lowered at once",
            _4,
            "before resize_gang to 2",
            "Job update",
            5,
        ),
        Chosen(
            "a Job known by name alone is resized",
            _4,
            "before resize_gang to 2",
            "Job update",
            5,
            "reference",
        ),
        Chosen("a Job of the right size is left", _4, "running with 2", "Job update", 6),
        Chosen("a JobSet of the right size is left", _1, "all running", "JobSet update", 3),
        Chosen("a Job without a Workload waits for it", _4, _BORN, "Job update"),
        Chosen("a Job that is gone is left", _4, "deleted", "Job update", 6),
        Chosen("a PodGroup is not for this step", _4, "running with 2", "PodGroup update", 3),
        Chosen("a sweep lowers minCount", _4, "before resize_gang to 2", SWEEP),
    ),
    "emit_conditions": (
        Chosen("a new PodGroup is told while its pods are gated", _1, _GROUPED, "PodGroup add"),
        Chosen("a placed PodGroup is told", _1, "all bound", "PodGroup update"),
        Chosen(
            "a PodGroup known by name alone is told", _1, "all bound", "PodGroup update", mode="reference"
        ),
        Chosen(
            "placed initializers do not make the trainer scheduled",
            _2,
            "initializers running",
            "PodGroup update",
            2,
        ),
        Chosen("all groups placed make the TrainJob scheduled", _2, "trainer running", "PodGroup update", 3),
        Chosen(
            "a PodGroup without room is told in the words of the scheduler",
            _5,
            "unschedulable",
            "PodGroup update",
        ),
        Chosen("a PodGroup that got room is told", _5, "node added, all bound", "PodGroup update", 2),
        Chosen("the conditions of a Job carry a prefix", _4, "running", "PodGroup update"),
        Chosen("a complete TrainJob is left", _1, "complete", "PodGroup update"),
        Chosen("a Job that did not stop or start is left", _4, "before resize_gang to 6", "Job update", 3),
        Chosen("a PodGroup that is gone is left", _5, "deleted", "PodGroup update", 2),
        Chosen("a sweep tells of groups that nobody made", _1, _BORN, SWEEP),
    ),
}
