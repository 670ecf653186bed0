"""Compares the permissions that Muster's roles grant with the requests of its service accounts.

Least privilege: over all stories every permission must be used. Pure functions;
tests/e2e/support/test_rights.py shows each comparison to fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]
NAMESPACE = "muster-system"
EVERYWHERE = ""
SHARED = "muster"
"""The account of all functions in the overlay one-service. Its roles are compared with their use on the other
stages, by the functions' own accounts."""

_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:"
_ALLOWED_BY = re.compile(r'RBAC: allowed by (?:Cluster)?RoleBinding "([^"/]+)')
_OF_EVERY_USER = ("system:basic-user", "system:discovery", "system:public-info-viewer")
"""Bindings of every cluster to all users: discovery and self-subject access reviews."""
_OF_KNATIVE = "-create-oidc-token"
"""End of the names of the RoleBindings that Knative makes for each source, with authentication-oidc."""


@dataclass(frozen=True, order=True)
class Right:
    """One permission of a service account of Muster's, granted or used.

    Attributes:
        account: the service account's name.
        verb: RBAC verb.
        resource: plural and API group, with the subresource if there is one: `jobs.batch/status`, `pods`.
        where: the namespace; `EVERYWHERE` for all namespaces, and for cluster-scoped objects.
        name: object name, as in `resourceNames`; empty for all.
    """

    account: str
    verb: str
    resource: str
    where: str = EVERYWHERE
    name: str = ""

    def __str__(self) -> str:
        where = f" in {self.where}" if self.where else ""
        return f"{self.account}: {self.verb} {self.resource} {self.name}".rstrip() + where

    def used_by(self, use: Right) -> bool:
        """Return whether a request needed this permission.

        A request inside Muster's own namespace needs no permission for all namespaces: a Role would do.
        """
        same_resource = (self.account, self.verb, self.resource) == (use.account, use.verb, use.resource)
        in_scope = use.where != NAMESPACE if self.where == EVERYWHERE else use.where == self.where
        return same_resource and in_scope and self.name in ("", use.name)


@dataclass
class Rights:
    """The permissions granted and used on all clusters of a run.

    Attributes:
        granted: by the roles of every overlay that was installed.
        used: by requests that those roles allowed.
        borrowed: requests that other bindings than Muster's allowed, with the name of the binding.
        refused: requests that RBAC refused.
        denied: requests that RBAC allowed and an admission policy of `eventing/security/accounts` refused.
    """

    granted: set[Right] = field(default_factory=set)
    used: set[Right] = field(default_factory=set)
    borrowed: set[str] = field(default_factory=set)
    refused: set[Right] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)

    def add(self, manifests: Sequence[Object], events: Sequence[Object]) -> None:
        """Add the permissions that one installation granted and used.

        Args:
            manifests: the installed objects.
            events: audit events (audit.k8s.io/v1) of its service accounts.
        """
        self.granted |= {right for right in granted(manifests) if right.account != SHARED}
        bindings = {
            manifest["metadata"]["name"] for manifest in manifests if manifest["kind"].endswith("RoleBinding")
        }
        self.refused |= set(refused(events))
        self.denied |= set(denied(events))
        for event in events:
            use = _use(event)
            if use is None or not _allowed(event):
                continue
            reason = event["annotations"].get("authorization.k8s.io/reason", "")
            allowed_by = match[1] if (match := _ALLOWED_BY.match(reason)) else reason
            if allowed_by in bindings:
                self.used.add(use)
            elif allowed_by not in _OF_EVERY_USER and not allowed_by.endswith(_OF_KNATIVE):
                self.borrowed.add(f"{use}, allowed by {allowed_by or 'nobody knows what'}")

    def join(self, others: Rights) -> None:
        """Add the permissions of another process's clusters."""
        self.granted |= others.granted
        self.used |= others.used
        self.borrowed |= others.borrowed
        self.refused |= others.refused
        self.denied |= others.denied

    def unused(self) -> list[Right]:
        """Return the permissions that were granted and never needed."""
        return sorted(right for right in self.granted if not any(right.used_by(use) for use in self.used))


def granted(manifests: Iterable[Object]) -> Iterator[Right]:
    """Yield every permission that the bindings in these manifests grant to service accounts of Muster's.

    Raises:
        ValueError: a rule has wildcards or URLs, or a subject is not a single service account.
    """
    objects = list(manifests)
    roles = {(obj["kind"], obj["metadata"]["name"]): obj for obj in objects if "rules" in obj}
    for binding in (obj for obj in objects if obj["kind"].endswith("RoleBinding")):
        where = binding["metadata"].get("namespace", EVERYWHERE)
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        for subject in binding["subjects"]:
            if (subject["kind"], subject.get("namespace")) != ("ServiceAccount", NAMESPACE):
                raise ValueError(f"{binding['metadata']['name']}: is bound to more than one of our accounts")
            for rule in role["rules"]:
                yield from _of_rule(subject["name"], rule, where)


def refused(events: Iterable[Object]) -> Iterator[Right]:
    """Yield the requests of Muster's accounts that RBAC refused; not those that admission refused."""
    for event in events:
        use = _use(event)
        if use is not None and not _allowed(event):
            yield use


def denied(events: Iterable[Object]) -> Iterator[str]:
    """Yield the requests that a ValidatingAdmissionPolicy refused, with the user and its message."""
    for event in events:
        message = (event.get("responseStatus") or {}).get("message", "")
        if "ValidatingAdmissionPolicy" in message:
            yield f"{event['user']['username']}: {event['verb']}: {message}"


def _allowed(event: Object) -> bool:
    annotations: Object = event.get("annotations") or {}
    return annotations.get("authorization.k8s.io/decision") == "allow"


def _of_rule(account: str, rule: Object, where: str) -> Iterator[Right]:
    parts = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
    if "*" in parts or "nonResourceURLs" in rule:
        raise ValueError(f"{account}: {rule} does not say what it grants")
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                for name in rule.get("resourceNames") or [""]:
                    yield Right(account, verb, _resource(group, *resource.partition("/")[::2]), where, name)


def _use(event: Object) -> Right | None:
    """Return the permission that a request needed; None for other users and for non-resource requests."""
    user, reference = event["user"]["username"], event.get("objectRef")
    if not user.startswith(_ACCOUNT) or not reference or "resource" not in reference:
        return None
    resource = _resource(
        reference.get("apiGroup", ""), reference["resource"], reference.get("subresource", "")
    )
    where, name = reference.get("namespace", EVERYWHERE), reference.get("name", "")
    return Right(user.removeprefix(_ACCOUNT), event["verb"], resource, where, name)


def _resource(group: str, plural: str, subresource: str) -> str:
    spelled = f"{plural}.{group}" if group else plural
    return f"{spelled}/{subresource}" if subresource else spelled
