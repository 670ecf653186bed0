"""Where a policy may stand, and which one rules: the first home that has one, even if it is broken there.

A broken policy never falls through to a lower home: whoever wrote it did not ask for the default.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.objects.jobs import TrainJob
from muster.objects.scheduling import Workload
from muster.policy import marks, schema
from muster.policy.groups import GivenUp
from muster.policy.model import Home, HomeKind, Owner
from muster.policy.reasons import Reason
from muster.policy.schema import InvalidPolicyError, WorkloadPolicy

ANNOTATION = "muster.dev/pod-group-policy"
HOME = "muster.dev/policy-home"
"""Annotation of a Workload: where the policy stood that it was made under."""

CONFIG_MAP = "muster-policy"
CONFIG_MAP_KEY = "policy"


@dataclass(frozen=True)
class Ruling:
    """The policy that rules, and where it stands.

    Attributes:
        where: the home in words.
        workload: groups of scheduling.k8s.io; None where another scheduler groups the pods.
        other: that scheduler, as the policy names it, or `upstream`; "" where there is none.
        queue: the queue in that scheduler; "" for its default.
        kept: whether groups were made under it already; scaled since, they need not fit it any more.
    """

    where: str
    workload: WorkloadPolicy | None
    other: str = ""
    queue: str = ""
    kept: bool = False

    @property
    def holds(self) -> bool:
        """Whether pods stay gated where their groups cannot be had, instead of running without a gang."""
        return self.workload is not None and self.workload.on_failure == "Hold"


def of_runtime(runtime: Mapping[str, Any]) -> tuple[Home, ...]:
    """The homes of a (Cluster)TrainingRuntime that have a policy, highest first.

    Args:
        runtime: as parsed JSON; {} where there is none.
    """
    metadata = runtime.get("metadata") or {}
    named = f"{runtime.get('kind', 'runtime')} {metadata.get('name', '')}"
    found = [Home(HomeKind.UPSTREAM, f"{field} of {named}", "") for field in _upstream_fields(runtime)][:1]
    text = (metadata.get("annotations") or {}).get(ANNOTATION)
    if text is not None:
        found.append(Home(HomeKind.RUNTIME, f"annotation {ANNOTATION} of {named}", text))
    field = (runtime.get("spec") or {}).get("podGroupPolicy")
    if field:
        found.append(Home(HomeKind.RUNTIME_SPEC, f"spec.podGroupPolicy of {named}", field))
    return tuple(found)


def _upstream_fields(runtime: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a runtime by which all pods of its TrainJobs are grouped upstream.

    KEP-3015 puts `spec.scheduling` on the runtime, KEP-969 on the JobSet; released CRDs prune both.
    """
    spec = runtime.get("spec") or {}
    jobset = spec.get("template") or {}
    if spec.get("scheduling") is not None:
        yield "spec.scheduling"
    if (jobset.get("spec") or {}).get("scheduling") is not None:
        yield "spec.template.spec.scheduling"
    if marks.UPSTREAM_TEMPLATE in ((jobset.get("metadata") or {}).get("annotations") or {}):
        yield f"spec.template.metadata.annotations: {marks.UPSTREAM_TEMPLATE}"


def stored(workload: Workload) -> tuple[Home, ...]:
    """The policy that a Workload of Muster's was made under; none where that was the built-in default."""
    annotations = workload.metadata.annotations
    if ANNOTATION not in annotations:
        return ()
    return (Home(HomeKind.STORED, annotations.get(HOME, str(workload.ref)), annotations[ANNOTATION]),)


def annotations_of(ruling: Ruling) -> dict[str, str]:
    """What a Workload says of the policy it is made under, for as long as it lives."""
    if ruling == DEFAULT or ruling.workload is None:
        return {}
    policy = ruling.workload.model_dump(by_alias=True, exclude_unset=True)
    return {ANNOTATION: json.dumps({"workload": policy}), HOME: ruling.where}


DEFAULT = Ruling("the built-in default", WorkloadPolicy())
_HOLDING = WorkloadPolicy(onFailure="Hold")
_RUNTIMES = frozenset({HomeKind.RUNTIME, HomeKind.RUNTIME_SPEC})


@dataclass(frozen=True)
class Broken:
    """A policy that cannot be used.

    Attributes:
        why: with home, path and what is wrong.
        ruling: what still counts of it: whether pods are held.
    """

    why: GivenUp
    ruling: Ruling


def rule(homes: tuple[Home, ...], owner: Owner | None = None) -> Ruling | Broken:
    """The policy of the first home.

    Args:
        homes: those that exist, highest first.
        owner: whose policy it is, for the command in a message.
    """
    if not homes:
        return DEFAULT
    home = homes[0]
    if home.kind == HomeKind.UPSTREAM:
        return Ruling(home.where, None, "upstream")
    try:
        policy = schema.parse(home.content) if isinstance(home.content, str) else schema.check(home.content)
    except InvalidPolicyError as error:
        return _broken(home, str(error))
    if policy.workload is not None:
        return Ruling(home.where, policy.workload, kept=home.kind == HomeKind.STORED)
    if policy.kai_scheduler is not None:
        if home.kind in _RUNTIMES:
            return Ruling(home.where, None, "kaiScheduler", policy.kai_scheduler.queue or "")
        return _broken(home, f"kaiScheduler: {_way_to_kai(policy.kai_scheduler.queue or '', owner)}")
    other = "volcano" if policy.coscheduling is None else "coscheduling"
    if home.kind == HomeKind.RUNTIME_SPEC:
        return Ruling(home.where, None, other)
    content = policy.model_dump(by_alias=True, exclude_none=True)
    return _broken(home, f"{other}: {_way_to_trainer(content, owner)}")


def broken(where: str, message: str, held: WorkloadPolicy | None = None) -> Broken:
    """A policy that cannot be used, for a reason that is found only beside what it is for."""
    why = GivenUp(Reason.INVALID_POLICY, f"{where}: {message}")
    return Broken(why, Ruling(where, held or WorkloadPolicy()))


def _broken(home: Home, message: str) -> Broken:
    return broken(home.where, message, _HOLDING if schema.asks_to_hold(home.content) else None)


def _way_to_kai(queue: str, owner: Owner | None) -> str:
    """How pods get to KAI: their schedulerName and queue must be there before the first of them exists."""
    if owner is not None and not isinstance(owner, TrainJob):
        label = f" and the label kai.scheduler/queue: {queue}" if queue else ""
        return (
            f"comes too late for a {owner.kind} that exists; "
            f"create it with schedulerName: kai-scheduler{label} in its pod templates"
        )
    policy = f"{{kaiScheduler: {{queue: {queue}}}}}" if queue else "{kaiScheduler: {}}"
    return (
        "only a runtime can hand pods to another scheduler, before they exist: "
        f"kubectl annotate --overwrite {_runtime(owner)} '{ANNOTATION}={policy}'"
    )


def _way_to_trainer(policy: Mapping[str, Any], owner: Owner | None) -> str:
    """How the Trainer hears of a scheduler of its own: it reads one field of the runtime and nothing else."""
    patch = json.dumps({"spec": {"podGroupPolicy": policy}})
    return (
        "the Trainer reads it in spec.podGroupPolicy of a runtime only: "
        f"kubectl patch {_runtime(owner)} --type merge -p '{patch}'"
    )


def _runtime(owner: Owner | None) -> str:
    if not isinstance(owner, TrainJob):
        return "clustertrainingruntime NAME"
    ref = owner.spec.runtime_ref
    where = f" -n {owner.metadata.namespace}" if ref.kind == "TrainingRuntime" else ""
    return f"{ref.kind.lower()} {ref.name}{where}"
