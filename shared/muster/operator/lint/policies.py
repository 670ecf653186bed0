"""Find the policies that are written in an object, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from muster.cluster.interface import POLICY_NAMESPACE
from muster.objects.meta import ObjectRef
from muster.objects.resources import is_known
from muster.operator.explain.assumptions import RUNTIMES
from muster.operator.lint.model import Severity
from muster.policy.owners import owner_kind
from muster.policy.sources.source import (
    ANNOTATION,
    CONFIG_MAP,
    InvalidPolicy,
    PolicySource,
    PolicySourceKind,
    locked_fields,
    resolve_policy,
    source_of_config_map,
    sources_of_runtime,
)
from muster.replay.snapshots import Object


def administrators_locks(body: Object) -> Iterator[PolicySource]:
    """Yield the fields that an administrator's ConfigMap locks, if they can be read."""
    if _is_policy(body) and _is_administrators(body):
        for source in locked_fields(body):
            if not isinstance(resolve_policy((source,)), InvalidPolicy):
                yield source


def policies_in(body: Object, locks: Sequence[PolicySource]) -> Iterator[tuple[Severity, str, str] | None]:
    """Yield severity, reason and message of the first fault of each policy in an object; None without one."""
    for source in _sources(body):
        policy = resolve_policy((*locks, source))
        if isinstance(policy, InvalidPolicy):
            yield Severity.ERROR, str(policy.failure.reason), policy.failure.message
        else:
            yield None
    if not _is_policy(body):
        return
    for source in locked_fields(body):
        result = resolve_policy((source,))
        if not _is_administrators(body):
            message = f"{source.where}: has no effect: fields are locked in namespace {POLICY_NAMESPACE} only"
            yield Severity.WARNING, "MisplacedPolicy", message
        elif isinstance(result, InvalidPolicy):
            yield Severity.ERROR, str(result.failure.reason), result.failure.message
        else:
            yield None


def _sources(body: Object) -> Iterator[PolicySource]:
    if not is_known(body["apiVersion"], body["kind"]):  # a kind of that name in another API group
        return
    if _is_policy(body):
        kind = PolicySourceKind.CLUSTER if _is_administrators(body) else PolicySourceKind.NAMESPACE
        yield from source_of_config_map(body, kind)
    elif body["kind"] in RUNTIMES and isinstance(body.get("spec"), dict):
        yield from (one for one in sources_of_runtime(body) if one.kind is not PolicySourceKind.UPSTREAM)
    elif owner_kind(body["apiVersion"].rpartition("/")[0], body["kind"]) is not None:
        metadata = body["metadata"]
        text = (metadata.get("annotations") or {}).get(ANNOTATION)
        if isinstance(text, str):
            ref = ObjectRef(body["apiVersion"], body["kind"], metadata.get("namespace", ""), metadata["name"])
            yield PolicySource(PolicySourceKind.OWNER, f"annotation {ANNOTATION} of {ref}", text)


def _is_policy(body: Object) -> bool:
    named = body["kind"] == "ConfigMap" and body["metadata"]["name"] == CONFIG_MAP
    return named and isinstance(body.get("data"), dict)


def _is_administrators(body: Object) -> bool:
    return bool(body["metadata"].get("namespace") == POLICY_NAMESPACE)
