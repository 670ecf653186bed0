"""Whether what an overlay of eventing/ installs is there, as it is written, and works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from muster.cluster.client import Client
from muster.cluster.errors import ApiGone
from muster.manifests import Manifest, of_kind
from muster.objects.resources import (
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    NAMESPACES,
    Resource,
)
from muster.operator.preflight.finding import Finding, Level, some
from muster.policy.marks import NAMESPACE_SWITCH

_POLICIES = (MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS)
_KNATIVE = ("Broker", "Trigger", "ApiServerSource", "PingSource", "Service")
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_CREATED = 201


class _CannotAskError(Exception):
    """Whoever checks may not ask what others may do."""


def of_the_installation(client: Client, objects: Sequence[Manifest]) -> Iterator[Finding]:
    """Whether Muster is installed and can work.

    Args:
        client: of the cluster.
        objects: what was installed, such as `muster.manifests.load()`.

    Raises:
        ClusterError: the API server does not answer or refuses.
    """
    for resource in _POLICIES:
        for wanted in of_kind(objects, resource.kind):
            yield _policy(client, resource, wanted)
    for kind in _KNATIVE:
        yield from _ready(client, kind, of_kind(objects, kind))
    yield from _permissions(client, objects)
    yield from _namespaces(client, of_kind(objects, "Namespace"))


def _policy(client: Client, resource: Resource, wanted: Manifest) -> Finding:
    about = f"{resource.kind} {wanted['metadata']['name']}"
    try:
        live = client.get(resource, wanted["metadata"]["name"])
    except ApiGone:
        live = None
    if live is None:
        return Finding(
            Level.FAIL, about, "is not installed: kubectl apply -k eventing/admission, before any marked Job"
        )
    if not _holds(live["spec"], wanted["spec"]):
        return Finding(
            Level.WARN, about, "differs from this version's: pods may be named as the functions do not expect"
        )
    return Finding(Level.OK, about, "is installed")


def _ready(client: Client, kind: str, wanted: list[Manifest]) -> Iterator[Finding]:
    """One finding for those that are ready, and one for each reason why others are not."""
    names: dict[str, list[str]] = {}
    for one in wanted:
        names.setdefault(_trouble(client, one), []).append(one["metadata"]["name"])
    fine = names.pop("", [])
    if fine:
        yield Finding(Level.OK, f"{kind}s", f"{len(fine)} of {len(wanted)} are ready")
    for trouble, troubled in names.items():
        yield Finding(Level.FAIL, f"{kind}s", f"{some(troubled)}: {trouble}")


def _trouble(client: Client, wanted: Manifest) -> str:
    """Why a Knative object does not work; nothing where it does."""
    group, _, version = wanted["apiVersion"].partition("/")
    resource = Resource(group, version, f"{wanted['kind'].lower()}s", wanted["kind"])
    metadata = wanted["metadata"]
    try:
        live = client.get(resource, metadata["name"], metadata["namespace"])
    except ApiGone:
        return f"{wanted['apiVersion']} is not served"
    if live is None:
        return "is not installed"
    conditions = (live.get("status") or {}).get("conditions") or []
    ready: dict[str, str] = next((one for one in conditions if one.get("type") == "Ready"), {})
    if ready.get("status") == "True":
        return ""
    said = ready.get("message") or ready.get("reason") or "no condition Ready yet"
    return f"is not ready: {said}"


def _permissions(client: Client, objects: Sequence[Manifest]) -> Iterator[Finding]:
    """Whether each service account may do what its role says, asked as the API server would decide."""
    roles = {(role["kind"], role["metadata"]["name"]): role for role in objects if "rules" in role}
    for binding in (one for one in objects if one["kind"] in {"ClusterRoleBinding", "RoleBinding"}):
        role = roles[(binding["roleRef"]["kind"], binding["roleRef"]["name"])]
        where = binding["metadata"].get("namespace", "")
        for subject in binding["subjects"]:
            try:
                yield _account(client, subject, where, role["rules"])
            except _CannotAskError as error:
                yield Finding(Level.WARN, "permissions", str(error))
                return


def _account(client: Client, subject: dict[str, str], where: str, rules: list[dict[str, Any]]) -> Finding:
    about = f"permissions of {subject['name']}"
    grants = list(_grants(rules))
    lacking = [
        f"{verb} {resource}"
        for verb, group, resource in grants
        if not _allowed(client, subject, where, verb, group, resource)
    ]
    if lacking:
        return Finding(Level.FAIL, about, f"may not {some(lacking)}: kubectl apply -k eventing/rbac")
    return Finding(Level.OK, about, f"all {len(grants)} are granted")


def _grants(rules: list[dict[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield verb, group, resource


def _allowed(
    client: Client, subject: dict[str, str], where: str, verb: str, group: str, resource: str
) -> bool:
    """Whether a subject of a binding may do something.

    Raises:
        _CannotAskError: the API server does not let us ask.
    """
    plural, _, subresource = resource.partition("/")
    attributes = {"verb": verb, "group": group, "resource": plural, "subresource": subresource}
    spec = {**_identity(subject), "resourceAttributes": attributes | {"namespace": where}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    status, answer = client.raw("POST", _REVIEWS, body=body)
    if status != _CREATED:
        raise _CannotAskError(
            f"could not be asked: {status}; you need the right to `create` `subjectaccessreviews`"
        )
    return bool(answer["status"].get("allowed"))


def _identity(subject: dict[str, str]) -> dict[str, Any]:
    """Who the API server is to take a subject for: a service account, or anybody of a group."""
    if subject["kind"] == "Group":
        return {"groups": [subject["name"]]}
    namespace = subject["namespace"]
    return {
        "user": f"system:serviceaccount:{namespace}:{subject['name']}",
        "groups": [
            "system:serviceaccounts",
            f"system:serviceaccounts:{namespace}",
            "system:authenticated",
        ],
    }


def _namespaces(client: Client, own: list[Manifest]) -> Iterator[Finding]:
    found = client.list(NAMESPACES, labels=f"{NAMESPACE_SWITCH}=enabled")
    enabled = sorted(one["metadata"]["name"] for one in found)
    for name in sorted({one["metadata"]["name"] for one in own} & set(enabled)):
        yield Finding(
            Level.FAIL,
            f"namespace {name}",
            f"has {NAMESPACE_SWITCH}: a gated pod of Muster would wait for Muster; take the label off",
        )
    if enabled:
        yield Finding(Level.OK, f"label {NAMESPACE_SWITCH}", f"is on {some(enabled)}")
    else:
        yield Finding(
            Level.WARN,
            f"label {NAMESPACE_SWITCH}",
            "is on no namespace: only Jobs whose template is marked by hand are gangs; "
            f"kubectl label namespace NAME {NAMESPACE_SWITCH}=enabled",
        )


def _holds(live: Any, wanted: Any) -> bool:
    """Whether all that is wanted is there; the API server adds defaults."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(_holds(live.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and len(live) == len(wanted) and all(map(_holds, live, wanted))
    return bool(live == wanted)
