"""Every variant of schedule-jobs, one sentence each: the Job that comes in, what it asks for afterwards."""

from __future__ import annotations

from tests.contract.admission.admission_variants import Object, job

GANG: Object = {"schedulingPolicy": {"gang": {}}}
BASIC: Object = {"schedulingPolicy": {"basic": {}}}
LABELLED = {"muster.dev/group": "main"}
UID = "7c6a1f0f-0000-4000-8000-000000000000"


def _owned(kind: str, *, controller: bool) -> Object:
    owner = {"apiVersion": "batch/v1", "kind": kind, "name": "theirs", "uid": UID, "controller": controller}
    return job(owner=owner, template_labels=LABELLED)


JOBS: dict[str, tuple[Object, Object | None]] = {
    "a labelled Job whose pods all run at once asks for a gang": (job(template_labels=LABELLED), GANG),
    "a labelled Job of one pod asks for no gang": (
        job(parallelism=1, completions=1, template_labels=LABELLED),
        BASIC,
    ),
    "a labelled work queue asks for no gang": (job(completions=6, template_labels=LABELLED), BASIC),
    "a labelled Job without indexes asks for no gang": (
        job(completionMode="NonIndexed", template_labels=LABELLED),
        BASIC,
    ),
    "an unlabelled Job is left alone": (job(completions=6), None),
    "an opted-out Job is left alone": (job(template_labels={"muster.dev/group": "none"}), None),
    "a group label that is no DNS label is none": (job(template_labels={"muster.dev/group": "A_b"}), None),
    "a leader's group that is no DNS label undoes the group label": (
        job(template_labels={**LABELLED, "muster.dev/leader-group": "A_b"}),
        None,
    ),
    "a CronJob's Job stays Muster's": (_owned("CronJob", controller=True), None),
    "an owner that is no controller does not count": (_owned("Note", controller=False), GANG),
    "a JobSet's child stays Muster's": (
        job(labels={"jobset.sigs.k8s.io/jobset-uid": UID}, template_labels=LABELLED),
        None,
    ),
    "a group of one's own stays": (
        job(template_labels=LABELLED, pod_spec={"schedulingGroup": {"podGroupName": "mine"}}),
        None,
    ),
    "KAI's Job is left alone": (
        job(template_labels=LABELLED, pod_spec={"schedulerName": "kai-scheduler"}),
        None,
    ),
    "a system priority class is left alone": (
        job(template_labels=LABELLED, pod_spec={"priorityClassName": "system-node-critical"}),
        None,
    ),
    "what the user asked for stays": (job(template_labels=LABELLED, scheduling=BASIC), None),
}
