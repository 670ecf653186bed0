"""Check that the objects of an overlay of eventing/ are installed unchanged, ready and permitted."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import product
from typing import Any, NamedTuple

from muster.cluster.errors import ApiGone
from muster.cluster.http.answers import mapping_of
from muster.cluster.http.client import Client
from muster.cluster.interface import Object
from muster.cluster.read import collect
from muster.objects.meta import KubernetesObject
from muster.objects.resources import (
    MUTATING_ADMISSION_POLICIES,
    MUTATING_ADMISSION_POLICY_BINDINGS,
    NAMESPACES,
    VALIDATING_ADMISSION_POLICIES,
    VALIDATING_ADMISSION_POLICY_BINDINGS,
    Resource,
)
from muster.operator.check.preflight import Finding, Level, first_names, opted_in
from muster.policy.group_labels import NAMESPACE_SWITCH
from muster.simulator.overlays import Manifest, of_kind

_POLICIES = (MUTATING_ADMISSION_POLICIES, MUTATING_ADMISSION_POLICY_BINDINGS)
_ACCOUNT_POLICIES = (VALIDATING_ADMISSION_POLICIES, VALIDATING_ADMISSION_POLICY_BINDINGS)
_KNATIVE = ("Broker", "Trigger", "ApiServerSource", "PingSource", "Service")
_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_CREATED = 201
_ACCOUNT = re.compile(r"system:serviceaccount:([^:']+):([^:']+)'")
"""Namespace and name of the account in a policy's condition."""
_DEFAULTS = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "scope": "*"}
"""What the API server sets in admission policies and bindings where nothing is written."""

MOST_GRANTS = 2000
"""The most combinations of verb, group, resource and name that are checked, each by a request: Muster's own
roles have 150, and a role of a kilobyte can have millions."""

_MANY_NEW_NAMESPACES = 15
"""In an hour. A new cluster with Knative and Muster has about ten."""


class _ReviewForbiddenError(Exception):
    """The user may not create SubjectAccessReviews."""


def check_installation(client: Client, objects: Sequence[Manifest], now: datetime) -> Iterator[Finding]:
    """Yield findings about the installed objects of Muster.

    Args:
        client: of the cluster.
        objects: the installed manifests, such as `muster.simulator.overlays.load()`.
        now: the time; namespaces of the last hour are counted.

    Raises:
        ClusterError: the API server does not answer or refuses.
    """
    for resource in _POLICIES:
        for manifest in of_kind(objects, resource.kind):
            yield _policy(client, resource, manifest)
    yield from _account_policies(client, objects)
    for kind in _KNATIVE:
        yield from _readiness(client, kind, of_kind(objects, kind))
    yield from _missing_accounts(objects)
    yield from _policies_of_no_account(objects)
    yield from _permissions(client, objects)
    yield from _namespaces(client, of_kind(objects, "Namespace"))
    yield from _new_namespaces(client, of_kind(objects, "ApiServerSource"), now)


def _policy(client: Client, resource: Resource, manifest: Manifest) -> Finding:
    about = f"{resource.kind} {manifest['metadata']['name']}"
    live = _live(client, resource, manifest)
    if live is None:
        return Finding(
            Level.FAIL,
            about,
            "is not installed: kubectl apply -k eventing/admission, before any Job with a group label",
        )
    if not _is_as_written(live, manifest["spec"]):
        return Finding(
            Level.WARN,
            about,
            "differs from this version's: pods may get names that the functions do not expect",
        )
    return Finding(Level.OK, about, "is installed")


def _live(client: Client, resource: Resource, manifest: Manifest) -> dict[str, Any] | None:
    """Return the spec of the installed policy or binding; None without one, or if its kind is not served."""
    name = manifest["metadata"]["name"]
    try:
        live = client.get(resource, name)
    except ApiGone:
        return None
    return live and mapping_of(resource.path(name), live, "spec")


def _account_policies(client: Client, objects: Sequence[Manifest]) -> Iterator[Finding]:
    """Yield a finding about the policies that limit what the service accounts write, and one per problem."""
    about, expected = "policies of the service accounts", 0
    missing: set[str] = set()
    changed: set[str] = set()
    for resource in _ACCOUNT_POLICIES:
        for manifest in of_kind(objects, resource.kind):
            expected += 1
            live = _live(client, resource, manifest)
            if live is None:
                missing.add(manifest["metadata"]["name"])
            elif not _is_as_written(live, manifest["spec"]):
                changed.add(manifest["metadata"]["name"])
    if missing:
        message = (
            f"policy or binding {first_names(sorted(missing))}: not installed, so a stolen token of the "
            "account may write all that its role allows; apply the overlay again"
        )
        yield Finding(Level.WARN, about, message)
    if changed:
        message = (
            f"policy or binding {first_names(sorted(changed))}: differs from this version's, so it may "
            "not limit the account, or refuse writes of the functions; delete it and apply the overlay again"
        )
        yield Finding(Level.WARN, about, message)
    if expected and not (missing or changed):
        yield Finding(Level.OK, about, f"all {expected} policies and bindings are installed")


def _readiness(client: Client, kind: str, objects: list[Manifest]) -> Iterator[Finding]:
    """Yield a finding for the ready objects of a kind, and a finding per reason why others are not ready."""
    names_by_reason: dict[str, list[str]] = {}
    for manifest in objects:
        names_by_reason.setdefault(_reason_not_ready(client, manifest), []).append(
            manifest["metadata"]["name"]
        )
    ready = names_by_reason.pop("", [])
    if ready:
        yield Finding(Level.OK, f"{kind}s", f"{len(ready)} of {len(objects)} are ready")
    for reason, names in names_by_reason.items():
        yield Finding(Level.FAIL, f"{kind}s", f"{first_names(names)}: {reason}")


def _reason_not_ready(client: Client, manifest: Manifest) -> str:
    """Return why a Knative object is not ready; "" if it is."""
    group, _, version = manifest["apiVersion"].partition("/")
    resource = Resource(group, version, f"{manifest['kind'].lower()}s", manifest["kind"])
    metadata = manifest["metadata"]
    try:
        live = client.get(resource, metadata["name"], metadata["namespace"])
    except ApiGone:
        return f"{manifest['apiVersion']} is not served"
    if live is None:
        return "is not installed"
    path = resource.path(metadata["name"], metadata["namespace"])
    conditions = mapping_of(path, live, "status").get("conditions") if live.get("status") else None
    entries = conditions if isinstance(conditions, list) else []
    ready: dict[str, str] = next(
        (entry for entry in entries if isinstance(entry, dict) and entry.get("type") == "Ready"), {}
    )
    if ready.get("status") == "True":
        return ""
    message = ready.get("message") or ready.get("reason") or "no condition Ready yet"
    return f"is not ready: {message}"


def _permissions(client: Client, objects: Sequence[Manifest]) -> Iterator[Finding]:
    """Yield a finding per service account: whether SubjectAccessReviews allow all that its roles grant.

    None is checked if the roles grant more than MOST_GRANTS.
    """
    roles = {(role["kind"], role["metadata"]["name"]): role for role in objects if "rules" in role}
    bindings = [manifest for manifest in objects if manifest["kind"] in {"ClusterRoleBinding", "RoleBinding"}]
    granted: dict[tuple[str, str], tuple[dict[str, str], list[_Grant]]] = {}
    numbers = {
        key: max(len(role["rules"]), _number_of_grants(role["rules"]), 1) for key, role in roles.items()
    }
    left = MOST_GRANTS
    for binding in bindings:
        role = roles.get((binding["roleRef"]["kind"], binding["roleRef"]["name"]))
        if role is None:
            continue  # one that the cluster has, such as `view`
        namespace = binding["metadata"].get("namespace", "")
        for subject in binding.get("subjects") or ():
            left -= numbers[role["kind"], role["metadata"]["name"]]
            if left < 0:
                message = f"not checked: the roles grant more than {MOST_GRANTS} combinations"
                yield Finding(Level.WARN, "permissions", message)
                return
            grants = granted.setdefault((subject["kind"], subject["name"]), (subject, []))[1]
            grants += (grant._replace(namespace=namespace) for grant in _grants(role["rules"]))
    for subject, grants in granted.values():
        try:
            yield _account(client, subject, list(dict.fromkeys(grants)))
        except _ReviewForbiddenError as error:
            yield Finding(Level.WARN, "permissions", str(error))
            return


def _missing_accounts(objects: Sequence[Manifest]) -> Iterator[Finding]:
    """Warn of rights of an account that is missing in a namespace of these objects' accounts."""
    accounts = {_place(account["metadata"]) for account in of_kind(objects, "ServiceAccount")}
    namespaces = {namespace for namespace, _ in accounts}
    bindings = [binding for binding in objects if "roleRef" in binding]
    subjects = [subject for binding in bindings for subject in binding.get("subjects") or ()]
    bound = {_place(subject) for subject in subjects if subject["kind"] == "ServiceAccount"}
    for namespace, name in sorted(bound - accounts):
        if namespace not in namespaces:
            continue  # an account of others
        yield Finding(
            Level.WARN,
            f"account {name}",
            "has rights, but is not one of these objects: name components of Muster before one-service",
        )


def _policies_of_no_account(objects: Sequence[Manifest]) -> Iterator[Finding]:
    """Warn of policies whose account is none of these objects, as after a change of the namespace."""
    accounts = {_place(account["metadata"]) for account in of_kind(objects, "ServiceAccount")}
    without: list[str] = []
    for policy in of_kind(objects, VALIDATING_ADMISSION_POLICIES.kind):
        named = set(_ACCOUNT.findall(str(policy["spec"].get("matchConditions"))))
        if named and not named & accounts:
            without.append(policy["metadata"]["name"])
    if accounts and without:
        yield Finding(
            Level.WARN,
            "policies of the service accounts",
            f"policy {first_names(sorted(without))}: names no account of these objects, so it limits nobody; "
            "change the account in it as eventing/overlays/one-namespace/accounts does",
        )


def _place(named: dict[str, Any]) -> tuple[str, str]:
    return named.get("namespace", ""), named["name"]


def _account(client: Client, subject: dict[str, str], grants: list[_Grant]) -> Finding:
    about = f"permissions of {subject['name']}"
    denied = [
        f"{grant.verb} {grant.resource} {grant.name}".rstrip()
        for grant in grants
        if not _allowed(client, subject, grant)
    ]
    if denied:
        return Finding(Level.FAIL, about, f"may not {first_names(denied)}: kubectl apply -k eventing/rbac")
    return Finding(Level.OK, about, f"all {len(grants)} are granted")


class _Grant(NamedTuple):
    """A combination that RBAC rules grant; `name` and `namespace` are empty for all of them."""

    verb: str
    group: str
    resource: str
    name: str
    namespace: str = ""


def _grants(rules: list[dict[str, Any]]) -> Iterator[_Grant]:
    """Yield each combination that RBAC rules grant."""
    for rule in rules:
        yield from (_Grant(*combination) for combination in product(*_parts(rule)))


def _number_of_grants(rules: list[dict[str, Any]]) -> int:
    return sum(math.prod(map(len, _parts(rule))) for rule in rules)


def _parts(rule: dict[str, Any]) -> tuple[list[str], ...]:
    return (rule["verbs"], rule["apiGroups"], rule["resources"], rule.get("resourceNames") or [""])


def _allowed(client: Client, subject: dict[str, str], grant: _Grant) -> bool:
    """Whether the API server allows a subject of a binding a verb on a resource.

    Raises:
        _ReviewForbiddenError: the API server refuses the SubjectAccessReview.
    """
    plural, _, subresource = grant.resource.partition("/")
    attributes = {
        "verb": grant.verb,
        "group": grant.group,
        "resource": plural,
        "subresource": subresource,
        "name": grant.name,
    }
    spec = {**_identity(subject), "resourceAttributes": attributes | {"namespace": grant.namespace}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    status, answer = client.raw("POST", _REVIEWS, body=body)
    if status != _CREATED:
        raise _ReviewForbiddenError(
            f"could not be checked: {status}; you need the right to `create` `subjectaccessreviews`"
        )
    return bool(mapping_of(f"POST {_REVIEWS}", answer, "status").get("allowed"))


def _identity(subject: dict[str, str]) -> dict[str, Any]:
    """Return user and groups of a SubjectAccessReview for a service account or a group."""
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


def _namespaces(client: Client, installed: list[Manifest]) -> Iterator[Finding]:
    enabled = opted_in(client)
    for name in sorted({manifest["metadata"]["name"] for manifest in installed} & set(enabled)):
        yield Finding(
            Level.FAIL,
            f"namespace {name}",
            f"has {NAMESPACE_SWITCH}: a gated pod of Muster would wait for Muster; remove the label",
        )
    if enabled:
        yield Finding(Level.OK, f"label {NAMESPACE_SWITCH}", f"is on {first_names(enabled)}")
    else:
        yield Finding(
            Level.WARN,
            f"label {NAMESPACE_SWITCH}",
            "is on no namespace: only Jobs whose pod template has a group label are gangs; "
            f"kubectl label namespace NAME {NAMESPACE_SWITCH}=enabled",
        )


def _new_namespaces(client: Client, sources: list[Manifest], now: datetime) -> Iterator[Finding]:
    """Warn if namespaces come and go while sources select all of them.

    Knative then replaces the adapters, and events of that second are lost until a sweep (Knative Eventing
    v0.47.0, seen).
    """
    selecting_all = [source for source in sources if source["spec"].get("namespaceSelector") == {}]
    if not selecting_all:
        return
    created = collect(client, NAMESPACES, _creation_times)
    new = sum(time is not None and now - time < timedelta(hours=1) for time in created)
    if new >= _MANY_NEW_NAMESPACES:
        yield Finding(
            Level.WARN,
            "new namespaces",
            f"{new} in the last hour; for each Knative replaces adapters of {len(selecting_all)} sources "
            "and changes in that second wait for the next sweep: see eventing/components/labelled-namespaces",
        )


def _creation_times(bodies: Iterable[Object]) -> Iterator[datetime | None]:
    return (namespace.metadata.created_at for namespace in map(KubernetesObject.read, bodies))


def _is_as_written(live: Any, written: Any) -> bool:
    """Whether the live spec of a policy or binding is the written one, but for defaults of the API server.

    Any other field beside the written ones could narrow what a policy covers: a selector, excluded rules.
    """
    if isinstance(written, dict):
        return (
            isinstance(live, dict)
            and all(_is_as_written(live.get(name), value) for name, value in written.items())
            and all(_is_default(name, value) for name, value in live.items() if name not in written)
        )
    if isinstance(written, list):
        return (
            isinstance(live, list) and len(live) == len(written) and all(map(_is_as_written, live, written))
        )
    return bool(live == written)


def _is_default(name: str, value: Any) -> bool:
    """Whether a field means the same as its absence; `{}` and `{matchLabels: {}}` select everything."""
    if isinstance(value, dict):
        return all(map(_is_default, value.keys(), value.values()))
    return not value or value == _DEFAULTS.get(name)
