"""Gangs by the label muster.dev/min-count in manifests of any kind: which can never start, or are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muster.cli.lint_labels import Found, Severity, gang_templates
from muster.objects.controllers import READABLE
from muster.policy.group_labels import ALL, GANG, GANG_BY, MIN_COUNT
from muster.policy.groups.gathered import LWS_EXCLUSIVE
from muster.policy.reasons import Reason

KINDS_READ_FOR_GANGS = frozenset(kind for _, kind in READABLE)
"""Kinds of which only the pod templates with the label matter."""

_KNOW_THEIR_SIZE = {*KINDS_READ_FOR_GANGS, "LeaderWorkerSet"}

_IN_ORDER = "spec.podManagementPolicy: must be Parallel; OrderedReady makes one pod after the other"
_LEADER_READY = "spec.startupPolicy: LeaderReady makes workers when their leader is ready: label workers only"
_LAUNCHER = "spec.launcherCreationPolicy: WaitForWorkersReady: the launcher comes later: label Workers only"


def gang_faults(body: Mapping[str, Any]) -> Iterator[Found]:
    """Yield severity, reason and message of each gang of an object that waits for itself, or is refused."""
    templates = gang_templates(body)
    kind, spec = body["kind"], body.get("spec") or {}
    for path, metadata in templates:
        labels, annotations = metadata["labels"], metadata.get("annotations") or {}
        if str(labels[MIN_COUNT]) == ALL and (kind not in _KNOW_THEIR_SIZE or GANG in labels):
            needs = "a StatefulSet, Deployment or LeaderWorkerSet without the label muster.dev/gang"
            yield Severity.ERROR, "InvalidLabel", f"{path}.labels: {MIN_COUNT}: all needs {needs}"
        if kind == "Pod" and GANG not in labels and GANG_BY not in annotations:
            yield Severity.ERROR, "InvalidLabel", f"{path}.labels: {MIN_COUNT}: a pod alone needs {GANG}, too"
    paths = str([path for path, _ in templates])
    exclusive = LWS_EXCLUSIVE in (body["metadata"].get("annotations") or {})
    both = "leaderTemplate" not in str(spec) or "leaderTemplate" in paths
    for waits, why in (
        (kind == "StatefulSet" and spec.get("podManagementPolicy") != "Parallel", _IN_ORDER),
        (kind == "LeaderWorkerSet" and spec.get("startupPolicy") == "LeaderReady" and both, _LEADER_READY),
        (
            kind == "LeaderWorkerSet" and exclusive,
            f"metadata.annotations: {LWS_EXCLUSIVE}: workers come later",
        ),
        (spec.get("launcherCreationPolicy") == "WaitForWorkersReady" and "Launcher" in paths, _LAUNCHER),
    ):
        if templates and waits:
            yield Severity.WARNING, str(Reason.WAITS_FOR_ITSELF), why
