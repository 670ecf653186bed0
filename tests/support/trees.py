"""A JobSet with a CompositePodGroup `chat` above two PodGroups, prefill and decode, of two pods each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from muster.objects.scheduling import CompositePodGroup
from muster.policy.sources.source import ANNOTATION, PolicySource, PolicySourceKind
from tests.support.builders import (
    OURS,
    Modifier,
    Object,
    a_child_job,
    a_jobset,
    a_pod_group,
    a_replicated_job,
    an_object,
    labelled,
    observed,
    owned_by,
    placed,
    with_spec,
)
from tests.support.planning import Observed

CHAT = "llama-chat-22222222"
GROUPS = {name: f"llama-{name}-22222222" for name in ("prefill", "decode")}
JOBSET = a_jobset(*(a_replicated_job(name, label=name) for name in GROUPS))
PREFILL, DECODE = (a_child_job(JOBSET, name, 0) for name in GROUPS)


def a_policy(**of_chat: Any) -> str:
    """Return the policy of the tree, with further fields of the group `chat`."""
    chat = {"name": "chat", "groups": [{"name": name} for name in GROUPS], **of_chat}
    return str({"workload": {"groups": [chat]}})


def below(parent: str) -> Modifier:
    """Set the group's parentCompositePodGroupName."""
    return with_spec(parentCompositePodGroupName=parent)


def a_composite(
    name: str, min_group_count: int | None, *modifiers: Modifier, root: Object = JOBSET
) -> Object:
    """Return a CompositePodGroup that Muster created; a minGroupCount of None makes it basic."""
    policy = {"basic": {}} if min_group_count is None else {"gang": {"minGroupCount": min_group_count}}
    ours = (labelled(OURS | {"muster.dev/owner-uid": root["metadata"]["uid"]}), owned_by(root))
    version = "scheduling.k8s.io/v1alpha3"
    spec = with_spec(schedulingPolicy=policy)
    return an_object(version, "CompositePodGroup", name, f"{name}-uid", spec, *ours, *modifiers)


def a_child_group(name: str, *modifiers: Modifier, min_count: int | None = 2, once: bool = True) -> Object:
    """Return one of the two PodGroups; `once`: it was placed before (PodGroupInitiallyScheduled)."""
    history = (placed,) if once else ()
    return a_pod_group(GROUPS[name], *history, below(CHAT), *modifiers, root=JOBSET, min_count=min_count)


def observed_tree(
    pods: Iterable[Object],
    *,
    min_group_count: int | None = 2,
    jobs: Iterable[Object] = (PREFILL, DECODE),
    sizes: Mapping[str, int | None] | None = None,
    policy: str = "",
    composites: Iterable[Object] | None = None,
    **rest: Any,
) -> Observed:
    """Return the `Observed` of the JobSet, whose groups were placed before."""
    above = [a_composite(CHAT, min_group_count)] if composites is None else composites
    counts = {"prefill": 2, "decode": 2} | dict(sizes or {})
    given: dict[str, Any] = {
        "composites": tuple(map(CompositePodGroup.read, above)),
        "groups": [a_child_group(name, min_count=counts[name]) for name in GROUPS],
        "sources": (PolicySource(PolicySourceKind.OWNER, ANNOTATION, policy or a_policy()),),
        **rest,
    }
    return observed(JOBSET, jobs=jobs, pods=pods, **given)
