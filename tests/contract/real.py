"""Runs contract cases on the real servers."""

from __future__ import annotations

from functools import partial

from tests.cluster import controllers, manifests
from tests.cluster.cluster import RealCluster
from tests.contract.accounts import ROLES, of_account
from tests.contract.answers import Entries
from tests.contract.case import ContractCase, Conversation


def converse(cluster: RealCluster, case: ContractCase) -> Entries:
    """Run a case in a namespace of its own, and return requests and answers.

    Raises:
        AssertionError: the rule does not hold.
    """
    namespace = f"{case.subject}-{case.key}".replace("_", "-")[:63].strip("-")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    manifests.apply(cluster.api, [home])
    conversation = Conversation(cluster.api, namespace, token_of=partial(_token, cluster))
    case.run(conversation, namespace)
    return conversation.entries


def _token(cluster: RealCluster, namespace: str, name: str) -> str:
    """Return a token of a service account of Muster's, which gets its role first."""
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    manifests.apply(cluster.api, [home, *of_account(name, ROLES)])
    return controllers.service_account_token(cluster.api, namespace, name)
