"""Hundreds of generated Jobs and pods for tests of the admission policies, the same in every run.

They mix values that match a rule with values that nearly do. All are valid for the API server.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

Object = dict[str, Any]
SEED = 20

_MARKS = ("trainer", "main", "none", "a", "x" * 63, "Trainer", "two.parts", "under_score", "0", "")
_GROUP_PER = ("job", "job-block", "Job", "pod", "")
_SIZES = ("1", "2", "4", "999999", "1000000", "0", "04", "2.5", "two", "")
_LEADERS = ("launcher", "Launcher", "l.eader", "", "none")
_INDEXES = ("0", "1", "3", "7", "12345", "999999999", "1234567890", "first", "")
_UIDS = (
    "6f1d0a52-0d4e-4b2b-9d2e-0d8f4a3c1b2a",
    "abcdefgh",
    "short",
    "1234567-9",
    "UPPER-CASE-UID",
    "",
)
_NAMES = ("llama", "sweep-4", "with.dots", "n" * 63, "Upper", "", "9")
_SCHEDULERS = ("default-scheduler", "kai-scheduler", "volcano", "my-scheduler")
_CONTROLS: tuple[tuple[bool | None, ...], ...] = (*[(True,)] * 6, (False, True), (False,), (None,), ())
"""Which of its owners control a pod."""

_CLASSES = ("", "", "", "", "high", "highest", "system-cluster-critical")
PRIORITY_CLASSES = {"high": 1000, "highest": 1_000_000_000}
"""Classes that the test must create; the ``system-`` ones exist in every cluster."""


def pods(count: int) -> list[Object]:
    """Return pods as a Job controller or a user might create them."""
    chance = random.Random(SEED)  # noqa: S311 - the same cases every time, no secret
    return [_pod(chance, number) for number in range(count)]


def jobs(count: int) -> list[Object]:
    """Return Jobs as a user, JobSet, a CronJob or the Trainer might create them."""
    chance = random.Random(SEED + 1)  # noqa: S311 - the same cases every time, no secret
    return [_job(chance, number) for number in range(count)]


def _pod(chance: random.Random, number: int) -> Object:
    labels = _group_labels(chance, always=0.95)
    if chance.random() < 0.6:
        labels |= _some(
            chance, {"jobset.sigs.k8s.io/jobset-name": _NAMES, "jobset.sigs.k8s.io/jobset-uid": _UIDS}
        )
        labels |= _some(chance, {"jobset.sigs.k8s.io/job-index": _INDEXES})
    if chance.random() < 0.8:
        labels |= _some(
            chance, {"batch.kubernetes.io/job-name": _NAMES, "batch.kubernetes.io/controller-uid": _UIDS}
        )
        labels |= _some(chance, {"batch.kubernetes.io/job-completion-index": _INDEXES})
    metadata, spec = _pod_fields(chance, labels, rare=0.04)
    controls = chance.choice(_CONTROLS)
    metadata["ownerReferences"] = [_owner("Job", controller=controller) for controller in controls]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, "name": f"pod-{number}"},
        "spec": spec,
    }


def _job(chance: random.Random, number: int) -> Object:
    template_labels = _group_labels(chance, always=0.15) if chance.random() < 0.3 else {}
    template_metadata, pod_spec = _pod_fields(chance, template_labels, rare=0.05)
    metadata: Object = {"name": f"job-{number}"}
    if chance.random() < 0.5:
        of_jobset = {
            "jobset.sigs.k8s.io/jobset-uid": _UIDS[:2],
            "jobset.sigs.k8s.io/replicatedjob-name": ("node", "launcher", "dataset-initializer"),
            "trainer.kubeflow.org/trainjob-ancestor-step": ("trainer", "dataset-initializer"),
        }
        metadata["labels"] = _some(chance, of_jobset)
    if chance.random() < 0.05:
        metadata["annotations"] = {"scheduling.k8s.io/group-template-name": "workers"}
    if chance.random() < 0.3:
        metadata["ownerReferences"] = [_owner(controller=chance.choice((True, False, None)))]
    parallelism = chance.choice((None, 0, 1, 2, 3, 3, 8))
    spec: Object = {"template": {"metadata": template_metadata, "spec": pod_spec}}
    if parallelism is not None:
        spec["parallelism"] = parallelism
    completions = chance.choice((None, 1, 2, parallelism, parallelism, parallelism))
    if chance.random() < 0.8 and completions is not None:
        spec |= {"completionMode": "Indexed", "completions": completions}
    elif completions is not None:
        spec["completions"] = completions
    if chance.random() < 0.2:
        spec["suspend"] = True
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def _group_labels(chance: random.Random, *, always: float) -> dict[str, str]:
    labels = {"muster.dev/group": _mostly_first(chance, _MARKS)} if chance.random() < always else {}
    for key, values in (
        ("muster.dev/group-per", _GROUP_PER),
        ("muster.dev/group-size", _SIZES),
        ("muster.dev/leader-group", _LEADERS),
        ("muster.dev/leader-group-per", _GROUP_PER),
    ):
        if chance.random() < 0.2:
            labels[key] = chance.choice(values)
    return labels


def _pod_fields(chance: random.Random, labels: dict[str, str], rare: float) -> tuple[Object, Object]:
    metadata: Object = {}
    annotations: dict[str, str] = {}
    if chance.random() < rare:
        labels = {**labels, "scheduling.x-k8s.io/pod-group": "theirs"}
    if chance.random() < rare:
        annotations["scheduling.k8s.io/group-name"] = "theirs"
    if chance.random() < 0.15:
        annotations["muster.dev/gate"] = chance.choice(("off", "on", "Off", ""))
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return metadata, _pod_spec(chance, rare)


def _pod_spec(chance: random.Random, rare: float) -> Object:
    spec: Object = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/train"}]}
    if chance.random() < 3 * rare:
        spec["schedulerName"] = chance.choice(_SCHEDULERS)
    if priority_class := chance.choice(_CLASSES):
        spec["priorityClassName"] = priority_class
    if chance.random() < rare:
        spec["schedulingGroup"] = {"podGroupName": "brought"}
    elif chance.random() < rare:
        spec["nodeName"] = "node-1"
    elif chance.random() < rare:
        spec["evictionResponders"] = [{"name": "example.com/checkpoint", "priority": 2000}]
    if "nodeName" not in spec and chance.random() < 0.15:  # the API server refuses both together
        spec["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    return spec


def _owner(kind: str = "CronJob", *, controller: bool | None) -> Object:
    owner: Object = {"apiVersion": "batch/v1", "kind": kind, "name": "nightly", "uid": _UIDS[0]}
    return owner if controller is None else {**owner, "controller": controller}


def _some(chance: random.Random, choices: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Choose a value for most of the keys; the first value of each is the most frequent one."""
    return {key: _mostly_first(chance, values) for key, values in choices.items() if chance.random() < 0.9}


def _mostly_first(chance: random.Random, values: Sequence[str]) -> str:
    return values[0] if chance.random() < 0.5 else chance.choice(values)
