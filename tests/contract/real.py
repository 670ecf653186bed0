"""Runs contract cases on the real servers."""

from __future__ import annotations

from collections.abc import Callable

from tests.cluster import controllers, manifests
from tests.cluster.cluster import RealCluster
from tests.contract.accounts import roles_of
from tests.contract.answers import Entries
from tests.contract.case import ContractCase, Conversation


def converse(cluster: RealCluster, case: ContractCase) -> Entries:
    """Run a case in a namespace of its own, and return requests and answers."""
    namespace = f"{case.subject}-{case.key}".replace("_", "-")[:63].strip("-")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    manifests.apply(cluster.api, [home])
    conversation = Conversation(cluster.api, namespace, token_of=of_service_account(cluster))
    case.run(conversation, namespace)
    return conversation.entries


def of_service_account(cluster: RealCluster) -> Callable[[str, str], str]:
    """Return a function that gives a service account of Muster's its role, and returns a token of it."""

    def token(namespace: str, name: str) -> str:
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        manifests.apply(cluster.api, [home, *roles_of(name)])
        return controllers.service_account_token(cluster.api, namespace, name)

    return token
