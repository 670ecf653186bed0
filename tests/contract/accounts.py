"""Requests with the token of a function's service account, limited by eventing/security/accounts."""

from __future__ import annotations

from typing import Any

from muster.simulator.apiserver import resource_definitions
from muster.simulator.overlays import Manifest
from tests.cluster import manifests
from tests.cluster.api import JSON, MERGE_PATCH, KubernetesApi
from tests.cluster.processes import until
from tests.contract.bodies import DEFINITIONS
from tests.contract.case import Conversation
from tests.support.overlays import objects_in

NAMESPACE = "muster-system"
POLICIES = objects_in("security/accounts")
COMPONENTS = [
    *objects_in("components/suspend-after-timeout"),
    *objects_in("components/restart-gang"),
]
REFUSED_BY = "ValidatingAdmissionPolicy"
PATIENCE = 60
"""Seconds to wait until a real server has read new roles and policies."""

_RBAC = {"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
_ROLES = [manifest for manifest in [*objects_in("rbac"), *COMPONENTS] if manifest["kind"] in _RBAC]


def roles_of(account: str) -> list[Manifest]:
    """Return a service account of Muster's with its roles and their bindings."""
    bindings = [one for one in _ROLES if account in {subject["name"] for subject in one.get("subjects", ())}]
    names = {account, *(binding["roleRef"]["name"] for binding in bindings)}
    return [one for one in _ROLES if one["metadata"]["name"] in names]


def account(api: Conversation, name: str, path: str, misuse: Any, method: str = "PATCH") -> Conversation:
    """Return a conversation with the token of a function's account, once the server limits what it writes.

    Args:
        api: the conversation as administrator.
        name: of the service account, `patch-pods`.
        path: of an object.
        misuse: a merge patch, or the body of a PUT, that a policy refuses; sent as a dry run until it is
            refused, because a real server reads policies and roles from caches.
        method: PATCH or PUT.
    """
    manifests.apply(api.api, [one for one in [*POLICIES, *COMPONENTS] if one["kind"].startswith(REFUSED_BY)])
    user = api.as_user(api.token_of(NAMESPACE, name), f"muster-{name}")

    def refused() -> bool:
        content_type = MERGE_PATCH if method == "PATCH" else JSON
        answer = user.api.request(method, path, misuse, content_type, {"dryRun": "All"})
        return REFUSED_BY in answer.message

    assert until(refused, PATIENCE), f"{method} {path} is not refused"
    return user


def is_refused(answer: Any) -> bool:
    """Whether a policy refused a request."""
    return answer.status == 403 and f"{REFUSED_BY} 'muster-" in answer.message


def serve(api: KubernetesApi, *names: str) -> None:
    """Have the embedded server serve JobSets or the Trainer's kinds; the real ones do so already."""
    for definition in resource_definitions(*names):
        if not api.request("GET", f"{DEFINITIONS}/{definition['metadata']['name']}").ok:
            api.must("POST", DEFINITIONS, definition)
